"""What is exported of a run: its rows, its calls, and what the findings say of them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from evenhand.core.errors import CorruptRun
from evenhand.findings.report import Report, Side
from evenhand.interop import ExternalItem
from evenhand.runs.store import RunReader

_AT_ONCE = 512  # our choice, in items whose calls are held in memory
Row = dict[str, Any]
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    """A run that is being exported. `report` is of measured runs, `asked` of instruments that say
    what the data have of each item."""

    run: RunReader
    name: str  # of its folder, without what is above it
    evenhand: str  # the version that exports it
    report: Report | None
    values: pl.DataFrame | None  # item_id, state, and a column for each measure
    asked: Mapping[str, ExternalItem] | None

    @property
    def title(self) -> str:
        return "evenhand runs export"

    @property
    def newest_run(self) -> str:
        return self.run.record.created

    @property
    def model(self) -> str:
        return Side.of(self.run).model

    @property
    def not_run(self) -> int:
        return self.run.planned - self.run.totals().items

    def measured(self) -> dict[str, dict[str, float]]:
        """Give the numbers of each item, by its name; what is null is left out."""
        if self.values is None:
            return {}
        return {
            row.pop("item_id"): {name: value for name, value in row.items() if value is not None}
            for row in self.values.drop("state").iter_rows(named=True)
        }

    def items(self) -> Iterator[tuple[Row, list[Row]]]:
        """Yield each item with its calls, in the order of the plan."""
        rows = self.run.results().collect()
        for batch in rows.iter_slices(_AT_ONCE):
            calls: dict[int, list[Row]] = {}
            for turn in self.run.turns_at(batch["position"].to_list()).collect().to_dicts():
                turn["error_message"] = without_addresses(turn["error_message"])
                calls.setdefault(turn["position"], []).append(turn)
            for row in batch.to_dicts():
                row["message"] = without_addresses(row["message"])
                yield row, calls.get(row["position"], [])


def without_addresses(message: str | None) -> str | None:
    """Leave out where an endpoint is: what a failed call said is handed on, and that is not."""
    return None if message is None else _ADDRESS.sub("(an address)", message)


def at(microseconds: int) -> str:
    """Write a moment as logs do, in UTC."""
    try:
        moment = datetime.fromtimestamp(microseconds / 1e6, UTC)
    except (ValueError, OverflowError, OSError):
        raise CorruptRun(f"a call of this run is dated {microseconds} µs after 1970") from None
    return moment.isoformat(timespec="milliseconds")
