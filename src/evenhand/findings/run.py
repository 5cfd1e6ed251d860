"""A run folder as Python code reads it: its results and turns as tables, and its report."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core import Answer, Turn
from evenhand.core.prices import Prices
from evenhand.findings.display import Displayable
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import ScoringSpec, value_named
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
            value_named(column, name).alias(f"{prefix}.{name}")
            for prefix, column in nested.items()
            for name in _names(rows[column])
        ]
        return rows.with_columns(flat).drop(nested.values())

    def turns(self) -> pl.DataFrame:
        """One row per call in the order of the plan: who was asked what, and what came back."""
        return self.reader.turns().collect()

    def report(self, instrument: ScoringSpec | None = None, prices: Prices | None = None) -> Report:
        """Report what the run showed. Pass a custom benchmark that is not installed."""
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


_COLUMNS = {
    "index": pl.Int64,
    "role": pl.String,
    "model": pl.String,
    "prompt": pl.String,
    "text": pl.String,
    "error": pl.String,
    "seconds": pl.Float64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedAnswer(Answer, Displayable):
    """A method's final word, with every turn of its agents. A notebook shows it as a timeline."""

    turns: tuple[Turn, ...]
    tags_taken_off: int = 0  # tags of our prompts that a model had copied into what it said

    @classmethod
    def of(cls, final: Answer, turns: Sequence[Turn], tags_taken_off: int) -> "TracedAnswer":
        """Combine a method's final answer with the model calls that led to it.

        Args:
            final: The answer of the method.
            turns: The model calls of the item, in their order.
            tags_taken_off: How many tags of our prompts the model had copied into its text; they
                were removed.
        """
        return cls(
            drafts=final.drafts,
            stopped=final.stopped,
            side_by_side=final.side_by_side,
            kept=final.kept,
            outcome=final.outcome,
            turns=tuple(turns),
            tags_taken_off=tags_taken_off,
        )

    def frame(self) -> pl.DataFrame:
        """One row per turn: who was asked, what came back, what it took."""
        rows = [
            {name: getattr(turn, name, None) for name in _COLUMNS}
            | {"text": turn.texts[0] if turn.texts else None}
            for turn in self.turns
        ]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "choice": self.choice,
            "changed": self.changed,
            "stopped": self.stopped,
            "outcome": self.outcome,
            "drafts": self.drafts,
            "turns": self.turns,
            "tags_taken_off": self.tags_taken_off,
        }
