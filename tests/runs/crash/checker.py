"""Reads a run folder without the package under test: JSON, SHA-256 and pyarrow alone.

Only `agree_with_the_reader` uses the package, to hold its reader against what is found here.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.runs.store import RunReader

from .worker import request_key

Row = dict[str, Any]
Key = Callable[[Row], str]  # a turn's name in the log of calls


def key_of(turn: Row) -> str:
    """As `LoggedModel` writes it."""
    return f"{turn['position']}:{turn['request']}:{turn['occurrence']}"


def http_key_of(turn: Row) -> str:
    """As the server writes it."""
    return request_key(turn["messages"], json.loads(turn["settings"]).get("schema"))


@dataclass(frozen=True)
class Committed:
    """What the ledger vouches for."""

    results: list[Row]
    turns: list[Row]
    files: dict[str, str]  # every committed file and its hash, run.json and ledger included
    tokens: list[int]  # of the openings, in order

    def positions(self) -> Counter[int]:
        return Counter(row["position"] for row in self.results)


def committed(out: Path) -> Committed:
    """Everything committed, each file against its hash and the ledger against its own order."""
    found = Committed([], [], {}, [])
    if (out / "run.json").exists():
        found.files["run.json"] = _sha256((out / "run.json").read_bytes())
    for slot, (name, data) in enumerate(_ledger(out, found.files)):
        entry = json.loads(data)
        assert entry["slot"] == slot
        if "part" not in entry:
            found.tokens.append(entry["token"])
        assert entry["token"] == found.tokens[-1], f"{name} is by a writer that was fenced off"
        for kind, rows in (("results", found.results), ("turns", found.turns)):
            if "part" in entry:
                rows.extend(_rows(out, entry["part"][kind], found.files))
    return found


def _ledger(out: Path, files: dict[str, str]) -> list[tuple[str, bytes]]:
    """The entries in order: those of compact files, then the small files that none of them holds.
    A small file beside a compact one that holds it says the same, or is the opening of a process
    that came too late and wrote nothing else."""
    found: list[tuple[str, bytes]] = []
    paths = visible(out / "ledger")
    for path in [p for p in paths if p.name.startswith("compact-")]:
        files[f"ledger/{path.name}"] = _sha256(path.read_bytes())
        lines = path.read_bytes().split(b"\n")
        assert path.name == f"compact-{len(found):08d}-{len(found) + len(lines) - 1:08d}.jsonl"
        found += [(path.name, line) for line in lines]
    compacted = len(found)
    for path in [p for p in paths if not p.name.startswith("compact-")]:
        data = path.read_bytes()
        if path.name < f"{compacted:08d}.json":
            late = "opened_by" in json.loads(data)
            assert found[int(path.stem)][1] == data or late, f"{path.name} was compacted otherwise"
            continue
        assert path.name == f"{len(found):08d}.json", f"the ledger has a gap before {path.name}"
        files[f"ledger/{path.name}"] = _sha256(data)
        found.append((path.name, data))
    return found


def _rows(out: Path, file: Row, files: dict[str, str]) -> list[Row]:
    data = (out / file["name"]).read_bytes()
    assert _sha256(data) == file["sha256"], f"{file['name']} is not what was committed"
    assert file["name"] not in files, f"{file['name']} is committed twice"
    files[file["name"]] = file["sha256"]
    # In one thread: pyarrow's own threads sometimes abort the process at its very end.
    rows: list[Row] = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist()
    assert len(rows) == file["rows"]
    return rows


def visible(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*") if not p.name.startswith("."))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def recorded(out: Path, key: Key) -> Counter[str]:
    """The calls whose reply is on disk: in a committed part or, whole, in a journal."""
    turns = {key_of(turn): turn for turn in committed(out).turns}
    for path in visible(out / "journal"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            if line.startswith(b"T "):
                turn = json.loads(line[line.index(b"{") :])
                turns[key_of(turn)] = turn
    return Counter(key(turn) for turn in turns.values() if turn["error"] != "budget_spent")


def started(log: Path) -> Counter[str]:
    return Counter(line[2:] for line in _lines(log) if line.startswith("S "))


def ended(log: Path) -> Counter[str]:
    return Counter(line[2:] for line in _lines(log) if line.startswith("E "))


def _lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


@dataclass
class Bill:
    """What was paid, over the kills of one run."""

    log: Path
    most: int = 100  # calls at once: fifty items at work, each of which asks two at most
    key: Key = key_of
    before: Counter[str] = field(default_factory=Counter)  # calls in the log of another run
    kills: int = 0
    in_flight: Counter[str] = field(default_factory=Counter)  # over all kills
    _made: Counter[str] = field(default_factory=Counter)  # up to the last kill
    _recorded: Counter[str] = field(default_factory=Counter)

    def note_kill(self, out: Path) -> None:
        """To be called after each kill, before the next process starts: what that one had begun
        and not recorded was in flight."""
        made, kept = self.made(), recorded(out, self.key)
        lost = (made - self._made) - (kept - self._recorded)
        assert lost.total() <= self.most, f"{lost.total()} calls were paid for and not recorded"
        self.in_flight += lost
        self._made, self._recorded = made, kept
        self.kills += 1

    def made(self) -> Counter[str]:
        return started(self.log) - self.before

    def check(self, unbroken: Counter[str]) -> tuple[int, int]:
        """No call was made again unless a kill caught it in flight, and then once per kill."""
        again = self.made() - unbroken  # made more often than an unbroken run makes them
        too_often = again - self.in_flight
        assert not too_often, f"{too_often.total()} recorded calls were made again"
        missing = unbroken.keys() - self.made().keys()
        assert not missing, f"{len(missing)} calls of the unbroken run were never made"
        return again.total(), self.in_flight.total()


def said(turns: list[Row]) -> Counter[tuple[Any, ...]]:
    """The turns without what the clock decides."""
    names = ("position", "role", "request", "occurrence", "error", "error_message", "settings")
    return Counter((*(turn[name] for name in names), *turn["texts"]) for turn in turns)


def check_whole(out: Path, planned: int, expected: Committed | None = None) -> Committed:
    """Every planned item once, each on its own turns, all of it as in the unbroken run."""
    found = committed(out)
    positions = found.positions()
    lost = set(range(planned)) - positions.keys()
    doubled = {position for position, count in positions.items() if count > 1}
    assert not lost, f"{len(lost)} items are lost: {sorted(lost)[:10]}"
    assert not doubled, f"{len(doubled)} items are there twice: {sorted(doubled)[:10]}"
    assert positions.keys() == set(range(planned)), "items that were not planned"
    _check_turns(found)
    if expected is not None:
        assert _in_order(found.results) == _in_order(expected.results)
        assert said(found.turns) == said(expected.turns)
    agree_with_the_reader(out, found)
    return found


def _in_order(results: list[Row]) -> list[Row]:
    return sorted(results, key=lambda row: int(row["position"]))


def _check_turns(found: Committed) -> None:
    indexes: dict[int, list[int]] = {}
    for turn in found.turns:
        indexes.setdefault(turn["position"], []).append(turn["index"])
    assert indexes.keys() <= found.positions().keys(), "turns of items that have no result"
    for position, order in indexes.items():
        assert sorted(order) == list(range(len(order))), f"item {position}: turns {sorted(order)}"
    # A call that the budget refused leaves a turn, and is not counted as a call.
    calls = Counter(turn["position"] for turn in found.turns if turn["error"] != "budget_spent")
    for row in found.results:
        assert row["calls"] == calls[row["position"]], f"item {row['position']}"


def agree_with_the_reader(out: Path, found: Committed) -> None:
    reader = RunReader(out)
    parts = sum(1 for name in found.files if name.startswith("results/"))
    assert reader.verify() == parts
    rows = [{"conversation": None, "tool_calls": None, **row} for row in _in_order(found.results)]
    assert reader.results().collect().to_dicts() == rows
    assert reader.turns().collect().height == len(found.turns)
    assert reader.totals().items == len(found.results)
