"""Read run folders: list them, show an item, the status of a run that goes on, and its results."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.core import Draft, Turn
from evenhand.core.errors import EvenhandError, UserError
from evenhand.core.prices import Prices
from evenhand.findings import cost as costs
from evenhand.findings.audit import Audit, audit_of, is_audit
from evenhand.findings.repeats import Repeats
from evenhand.findings.repeats import repeats as repeats_of
from evenhand.findings.report import Report
from evenhand.findings.report import report as report_of
from evenhand.findings.summary import Summary, summary
from evenhand.instruments import instrument_of, same_instrument
from evenhand.runs.runners.progress import STATUS_FILE
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.tables import turn_of

_PARTS_OF_A_RUN = ("journal", "ledger", "results", "turns")  # not looked into
_STALE_SECONDS = 60.0  # our choice: it is rewritten every 2 s, so 30 rewrites were missed


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run in a list. `problem` says why a folder cannot be read."""

    run: str
    kind: str | None = None
    method: str | None = None
    model: str | None = None
    done: int | None = None
    failed: int | None = None
    planned: int | None = None
    created: str | None = None
    cost: float | None = None
    currency: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item of a run as it is stored: its result, and every call that was made for it."""

    result: dict[str, Any]
    turns: list[dict[str, Any]]

    @property
    def drafts(self) -> list[Draft]:
        """The answers that the method tried, with their scores."""
        return [
            Draft(text=draft["text"], scores={s["name"]: s["value"] for s in draft["scores"]})
            for draft in self.result["drafts"]
        ]

    @property
    def conversation(self) -> list[Turn]:
        """The calls of the item, in their order."""
        return [turn_of(turn) for turn in self.turns]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The counters that a running process last wrote, and whether it still writes."""

    counters: dict[str, Any]
    seconds_since_update: float
    stale: bool

    def to_dict(self) -> dict[str, Any]:
        """The counters and the age, as JSON has them."""
        age = {"seconds_since_update": self.seconds_since_update, "stale": self.stale}
        return self.counters | age


def list_runs(folder: Path | None = None, prices: Prices | None = None) -> list[RunLine]:
    """List the runs at or below a folder, the newest first, with prices also what each cost. Usual
    is the folder `runs`, if there is one, else the current folder."""
    root = folder or usual_folder()
    if not root.is_dir():
        raise UserError(f"{root} is not a folder; give one that holds runs: evenhand runs list .")
    lines = [_line(path, prices) for path in _run_folders(root)]
    return sorted(lines, key=lambda line: line.created or "", reverse=True)


def usual_folder() -> Path:
    """The folder `runs` if there is one, else the current folder."""
    return Path("runs") if Path("runs").is_dir() else Path()


def _run_folders(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _PARTS_OF_A_RUN]
        if "run.json" in files:
            yield Path(root)


def _line(folder: Path, prices: Prices | None) -> RunLine:
    line = RunLine(run=str(folder))
    try:
        run = RunReader(folder)
        totals, record = run.totals(), run.record
        line = replace(
            line,
            kind=record.source.get("benchmark") or record.source["kind"],
            method=record.method["name"],
            model=record.cast["default"].get("model"),
            done=totals.items,
            failed=sum(totals.failed.values()),
            planned=record.planned,
            created=record.created,
        )
        if prices is not None:
            line = replace(line, **asdict(costs.money(run, prices)))
    except EvenhandError as error:
        line = replace(line, problem=str(error))
    return line


def items_called(location: str, item: str, position: int | None = None) -> list[ItemRecord]:
    """Read an item of a run with its calls.

    Args:
        location: The run folder.
        item: The id of the item. In the traffic of a gateway also the id of an exchange.
        position: The position of the item, where its id is repeated.

    Raises:
        UserError: If no finished item has this id, or several have it.
    """
    run = RunReader(location)
    rows = _rows(run, item, position)
    if not rows:
        raise UserError(
            f"{location} has no finished item {item!r}{_like_others(run)}; all of them: "
            f"evenhand runs export {location} --out items.jsonl"
        )
    if len({row["item_id"] for row in rows}) < len(rows):
        positions = [str(row["position"]) for row in rows]
        raise UserError(
            f"{location} has {len(rows):,} items {item!r}, at the positions "
            f"{', '.join(positions[:5])}: add --position {positions[0]} to see that one"
        )
    turns = run.turns_at([row["position"] for row in rows]).collect()
    by_position = {
        at: turns.filter(pl.col("position") == at).to_dicts() for at in turns["position"]
    }
    return [ItemRecord(row, by_position.get(row["position"], [])) for row in rows]


def _rows(run: RunReader, item: str, position: int | None) -> list[dict[str, Any]]:
    """The rows of an item. Of a gateway's traffic an id may be that of an exchange, as its header
    `evenhand-id` has it: then those of its texts."""
    matched = run.results().filter(pl.col("item_id") == item)
    if position is not None:
        matched = matched.filter(pl.col("position") == position)
    rows = matched.collect().to_dicts()
    if not rows and run.record.source.get("kind") == "gateway":
        texts = pl.col("item_id").str.starts_with(f"{item}-")
        rows = run.results().filter(texts).collect().to_dicts()
    return rows


def _like_others(run: RunReader) -> str:
    ids = run.results().select("item_id").head(1).collect()["item_id"]
    late = ", and what a gateway answered in the last minute is not there yet"
    open_ = late if run.open and run.record.source.get("kind") == "gateway" else ""
    return (f"; its ids look like {ids[0]}" if len(ids) else "") + open_


def summary_at(location: str, prices: Prices | None = None) -> Summary:
    """Summarize a run: what failed, what changed, what it cost."""
    return summary(RunReader(location), prices)


def result_again(location: str, prices: Prices | None = None) -> tuple[Report | Audit, int]:
    """Compute the report or the audit of a measured run again, without a call; also how many of
    its items are not run yet."""
    again = report_again(location, prices)
    return audit_of(again) if is_audit(again.instrument) else again, again.not_run


def report_again(location: str, prices: Prices | None = None) -> Report:
    """Compute the report of a measured run again, without a call."""
    run = RunReader(location)
    if run.record.source.get("kind") == "gateway":
        raise UserError(
            f"{location} is the traffic of a gateway, which no benchmark measured. What was done: "
            f"evenhand runs show {location}. A page to hand over: "
            f"evenhand report {location} --out report.html"
        )
    return report_of(instrument_of(run), run, prices)


def repeated_settings(settings: list[list[RunReader]]) -> Repeats:
    """Compute mean and standard deviation over the runs of each setting."""
    first = settings[0][0]
    for run in (run for group in settings for run in group):
        same_instrument(first, run)
    return repeats_of(instrument_of(first), settings)


def run_status(location: str) -> RunStatus:
    """Read how far a run is that another process runs, and whether that process still writes."""
    try:
        counters: dict[str, Any] = orjson.loads(open_folder(location).read(STATUS_FILE))
        age = (datetime.now(UTC) - datetime.fromisoformat(counters["updated"])).total_seconds()
        # A clock that is far ahead says as little about the process as one that stands still.
        stale = counters["state"] == "running" and abs(age) > _STALE_SECONDS
    except FileNotFoundError:
        raise UserError(
            f"{location} has no {STATUS_FILE}: nothing ran there yet, or an older evenhand did; "
            f"`evenhand runs show {location}` shows what is committed"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise unreadable_status(location) from None
    return RunStatus(counters, age, stale)


def unreadable_status(location: str) -> UserError:
    """The error for a status file that lacks a field."""
    return UserError(
        f"{location}/{STATUS_FILE} cannot be read. Nothing rests on it: "
        f"`evenhand runs show {location}` shows what is committed"
    )
