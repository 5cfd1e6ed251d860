"""The checks of `oracles.py` for what lies in a run folder: ledger entries and journals."""

import json
from pathlib import Path
from typing import Any

from evenhand.core.errors import CorruptRun
from evenhand.runs.store.folder import LocalFolder
from evenhand.runs.store.journal import Recovered
from evenhand.runs.store.ledger import entries

from . import shapes
from .second_reader import WIRE, Refused, read_json

LEDGER_FILE = "ledger/00000000.json"
JOURNAL_FILE = "journal/00000000-000000.log"


class InMemory(LocalFolder):
    """A run folder of one file."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(Path("run"))
        self._name = name
        self._data = data

    def names(self, folder: str) -> list[str]:
        return [self._name] if self._name.startswith(f"{folder}/") else []

    def read(self, name: str) -> bytes:
        return self._data


def ledger_entry(data: bytes) -> bool:
    """Read only with the checksum that a second canonical form of its fields gives."""
    try:
        (entry,) = entries(InMemory(LEDGER_FILE, data))
    except CorruptRun:
        return False
    body: dict[str, Any] = json.loads(data)
    assert body.pop("check") == shapes.signature(body)
    assert json.loads(entry.model_dump_json(exclude_none=True)) == body
    return True


def journal(data: bytes) -> Recovered:
    """Whole lines with the right sum, a known kind and the fields a row needs; nothing else."""
    found = Recovered.read(InMemory(JOURNAL_FILE, data), lambda _: True)
    turns: dict[Any, dict[Any, bytes]] = {}
    results: dict[Any, tuple[int, bytes]] = {}
    damaged = 0
    for line in data.split(b"\n")[:-1]:
        kind, row, said = line[:1], line[11:], _fields(line)
        if kind == b"T" and said.keys() >= {"position", "request", "occurrence"}:
            turns.setdefault(said["position"], {})[said["request"], said["occurrence"]] = row
        elif kind == b"R" and said.keys() >= {"position", "calls"}:
            results[said["position"]] = said["calls"], row
        else:
            damaged += 1
    assert (found.turns, found.damaged) == (turns, damaged)
    whole = {p for p, (calls, _) in results.items() if len(turns.get(p, {})) >= calls}
    finished, unfinished = found.sorted_out(lambda _: True)
    ended = {results[p][1] for p in whole} if not damaged else set()
    assert set(finished.results) == ended
    assert unfinished.keys() == turns.keys() - (whole if not damaged else set())
    return found


def _fields(line: bytes) -> dict[str, Any]:
    row = line[11:]
    if line[2:10] != f"{shapes.crc32(row):08x}".encode():
        return {}
    try:
        said = read_json(row.decode(), WIRE)
    except (UnicodeDecodeError, Refused):
        return {}
    return said if isinstance(said, dict) else {}
