"""Several runs of one system become one side of a comparison: of each item, its mean over them."""

from collections.abc import Iterator, Sequence

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.conditions import ORDER, WORDING, conditions, require_one_system
from evenhand.findings.remarks import Remark
from evenhand.findings.rows import keys_of, missing_of, row_values
from evenhand.findings.scoring import SCORED, Scoring, ScoringSpec, outcome_batches
from evenhand.runs.store import RunReader

VARIES = "varies"  # in place of a word, such as which option was picked, that the runs disagree on
Runs = tuple[RunReader, ...]


def require_averages(instrument: ScoringSpec, runs: Runs) -> None:
    """Refuse to average what has no mean over runs: those of two systems, and a measure of a whole
    cluster such as a maximum, which is another number for means than for answers."""
    if len(runs) < 2:
        return
    require_one_system(runs)
    for measure in instrument.measures:
        if not measure.statistic.averages:
            raise UserError(
                f"{instrument.name} cannot average runs, because of: {measure.label}. It is a "
                f"number of all answers to one of the {instrument.clusters}; compare one run with "
                "one, and let each ask more"
            )


def rows_of(
    instrument: ScoringSpec, runs: Runs, scorings: Sequence[Scoring]
) -> Iterator[pl.DataFrame]:
    """Yield the outcomes of a side's one run, or the mean of its several ones item by item.

    An item counts where every run has come to it. It has a value where every run has an answer: one
    that is missing once is missing. A measure that is not about every answer (such as those that
    name somebody) is averaged over the answers that it is about. Several runs are held in memory.
    """
    batches = [
        outcome_batches(instrument, run, scoring)
        for run, scoring in zip(runs, scorings, strict=True)
    ]
    if len(runs) == 1:
        yield from batches[0]
        return
    rows = pl.concat([row_values(batch, instrument) for each in batches for batch in each])
    keys = ["item_id", *keys_of(instrument)]
    lost = pl.col("state").filter(pl.col("state") != SCORED)
    complete = {name: lost.len() == 0 for name in rows.columns}
    for measure in instrument.measures:  # of which a value may be lost beside the score
        complete |= dict.fromkeys(measure.columns(), ~pl.col(missing_of(measure)).any())
    means = rows.group_by(keys, maintain_order=True).agg(
        pl.len().alias("asked"),
        pl.coalesce(lost.first(), pl.lit(SCORED)).alias("state"),
        *(
            _mean(rows[name], complete[name])
            for name in rows.columns
            if name not in (*keys, "state")
        ),
    )
    yield means.filter(pl.col("asked") == len(runs)).drop("asked")


def _mean(column: pl.Series, complete: pl.Expr) -> pl.Expr:
    value = pl.col(column.name)
    if column.dtype == pl.Boolean:
        return value.any()
    if column.dtype.is_numeric():
        return pl.when(complete).then(value.mean())
    return pl.when(value.n_unique() == 1).then(value.first()).otherwise(pl.lit(VARIES))


def notes_of(before: Runs, after: Runs) -> tuple[Remark, ...]:
    """Return of how many runs each side is the mean, and what the two sides were shown
    otherwise."""
    remarks = []
    if len(before) > 1 or len(after) > 1:
        remarks.append(Remark("comparison.averaged", before=len(before), after=len(after)))
    for facet in (ORDER, WORDING):
        old, new = (_levels(side, facet) for side in (before, after))
        if old and new and old != new:
            remarks.append(Remark("comparison.other_condition", facet=facet, before=old, after=new))
    return tuple(remarks)


def _levels(runs: Runs, facet: str) -> list[int]:
    levels = {conditions(run.record)[facet] for run in runs}
    return sorted(level for level in levels if level is not None)
