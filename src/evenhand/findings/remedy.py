"""What a remedy did to the answers of a run, by the marks of its own evaluators."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from evenhand.core import OUTCOMES, ScoreLimit
from evenhand.core.errors import Undefined
from evenhand.findings.display import RemarkOrText
from evenhand.runs.store import RunReader
from evenhand.statistics.clusters import Interval
from evenhand.statistics.proportions import Proportion, clustered_balance, wilson

MIN_ACCEPTED = 0.5  # our choice: below this share of accepted answers a command ends with code 4
_COLUMNS = ("prompt", "scores_before", "scores_after")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyJudge:
    """A judge of a run, and what is known of it."""

    run: str
    role: str
    model: str
    says: RemarkOrText  # what its certificate says, or why there is none
    passes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedySummary:
    """Outcomes by item, and harm before and after.

    An item counts as judged where every measure of harm of its kind has a mark before and after.
    """

    run: str
    outcomes: dict[str, int]
    answered: int
    bounds: tuple[ScoreLimit, ...]
    judges: tuple[RemedyJudge, ...] = ()
    judged: int = 0
    above_before: int = 0  # items with a measure of harm outside its bound
    above_after: int = 0
    worse: int = 0  # items in which a measure of harm rose
    change: Interval | None = field(default=None)  # of the share above the threshold

    @property
    def accepted(self) -> float | None:
        """The share of answered items that the evaluators accept."""
        return self.outcomes["accepted"] / self.answered if self.answered else None

    @property
    def before(self) -> Proportion | None:
        return wilson(self.above_before, self.judged) if self.judged else None

    @property
    def after(self) -> Proportion | None:
        return wilson(self.above_after, self.judged) if self.judged else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcomes": self.outcomes,
            "accepted": self.accepted,
            "judged": self.judged,
            "above_threshold_before": self.before,
            "above_threshold_after": self.after,
            "change": self.change,
            "worse_than_given": self.worse,
            "thresholds": self.bounds,
            "judges": self.judges,
        }


def counted(outcomes: dict[str, int]) -> dict[str, int]:
    """Every outcome with its number of items; the one that only `keep=last` has, if it is there."""
    usual = [name for name in OUTCOMES if name != "not_improved" or name in outcomes]
    return {name: outcomes.get(name, 0) for name in usual}


def remedy(
    run: RunReader, bounds: Sequence[ScoreLimit], judges: Sequence[RemedyJudge] = ()
) -> RemedySummary:
    """Count what a run did to its answers.

    Args:
        run: A run of a method that judges its drafts.
        bounds: The scores that measure harm for that method, and their thresholds.
        judges: Who gave the marks, and what is known of them.
    """
    totals = run.totals()
    batches = (_frame(batch.to_dicts(), bounds) for batch in run.result_batches(_COLUMNS))
    frame = pl.concat([_frame([], bounds), *batches])
    sums = frame.select(pl.col("before", "after", "worse").sum()).row(0)
    return RemedySummary(
        run=str(run.path),
        outcomes=counted(totals.outcomes),
        answered=totals.answered,
        bounds=tuple(bounds),
        judges=tuple(judges),
        judged=len(frame),
        above_before=sums[0],
        above_after=sums[1],
        worse=sums[2],
        change=_change(frame),
    )


def _frame(rows: Sequence[dict[str, Any]], bounds: Sequence[ScoreLimit]) -> pl.DataFrame:
    records = [record for row in rows if (record := _row(row, bounds)) is not None]
    numbers = ("before", "after", "worse")
    schema = {"prompt": pl.String(), **{name: pl.Int64() for name in numbers}}
    return pl.DataFrame(records, schema=schema, orient="row")


def _row(row: dict[str, Any], bounds: Sequence[ScoreLimit]) -> tuple[str, int, int, int] | None:
    """The prompt, whether harm is above a threshold before and after, and whether it rose."""
    before, after = (
        {score["name"]: score["value"] for score in row[name] or ()}
        for name in ("scores_before", "scores_after")
    )
    applicable = [bound for bound in bounds if bound.score in before and bound.score in after]
    if not applicable:
        return None
    return (
        row["prompt"] or "",
        int(not all(bound.within(before[bound.score]) for bound in applicable)),
        int(not all(bound.within(after[bound.score]) for bound in applicable)),
        int(
            any(
                bound.harm(after[bound.score]) > bound.harm(before[bound.score])
                for bound in applicable
            )
        ),
    )


def _change(frame: pl.DataFrame) -> Interval | None:
    """After minus before; items with the same prompt are one cluster."""
    moved = pl.col("after") - pl.col("before")
    totals = frame.group_by("prompt", maintain_order=True).agg(
        n=pl.len(), y=moved.sum(), x=pl.len(), size=moved.abs().sum(), size_x=pl.len()
    )
    try:
        return clustered_balance(totals.drop("prompt").to_numpy())
    except Undefined:
        return None
