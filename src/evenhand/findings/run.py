"""A run folder as Python code reads it: its results and turns as tables, and its report."""

import importlib
from typing import Any

import polars as pl

from evenhand.core.prices import Prices
from evenhand.findings.display import Displayable
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec
from evenhand.runs.store import RunReader, RunRecord
from evenhand.runs.store.reader import Totals


class Run(Displayable):
    """What a run folder holds.

    >>> made = evenhand.open_run("runs/now")
    >>> made.results().group_by("tag.category").agg(pl.col("score.harm").mean())
    """

    __slots__ = ("reader",)

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader

    def __repr__(self) -> str:
        done, planned = self.totals.items, self.reader.planned
        return f"<Run {self.path}: {self.record.method['name']}, {done:,} of {planned:,} items>"

    @property
    def path(self) -> str:
        return str(self.reader.path)

    @property
    def record(self) -> RunRecord:
        """What the run is: method, prompts, cast, source, limits, seed and versions."""
        return self.reader.record

    @property
    def totals(self) -> Totals:
        """Items answered and failed, calls and tokens, added up."""
        return self.reader.totals()

    def results(self) -> pl.DataFrame:
        """One row per item in the order of the plan. A tag of the items is a column such as
        `tag.category`, a score of the answer one such as `score.harm`, and of the first draft
        `score_before.harm`. What an item lacks is null."""
        rows = self.reader.results().collect()
        nested = {"tag": "tags", "score": "scores_after", "score_before": "scores_before"}
        flat = [
            _named(column, name).alias(f"{prefix}.{name}")
            for prefix, column in nested.items()
            for name in _names(rows[column])
        ]
        return rows.with_columns(flat).drop(nested.values())

    def turns(self) -> pl.DataFrame:
        """One row per call in the order of the plan: who was asked what, and what came back."""
        return self.reader.turns().collect()

    def report(self, instrument: ScoringSpec | None = None, prices: Prices | None = None) -> Report:
        """What the run showed. An instrument of your own that is not installed must be given."""
        if instrument is None:  # instruments are a room above, so this call goes by name
            rooms = importlib.import_module("evenhand.instruments")
            instrument = rooms.instrument_of(self.reader)
        assert instrument is not None
        return report(instrument, self.reader, prices)

    def frame(self) -> pl.DataFrame:
        """The results, without the drafts, which no flat table can hold."""
        return self.results().drop("drafts")

    def to_dict(self) -> dict[str, Any]:
        return {"run": self.path, "record": self.record.model_dump(), "totals": self.totals}


def _names(column: pl.Series) -> list[str]:
    """The names within a column of lists of names and values, in the order of the alphabet."""
    return column.explode().drop_nulls().struct.field("name").unique().sort().to_list()


def _named(column: str, name: str) -> pl.Expr:
    matches = pl.element().filter(pl.element().struct.field("name") == name)
    return pl.col(column).list.eval(matches.struct.field("value")).list.first()
