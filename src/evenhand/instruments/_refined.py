"""How many items a method sent back, iteration by iteration (StarDTox paper, Figure 3)."""

from collections.abc import Iterator

import polars as pl

from evenhand.agents.agent import repairs_of
from evenhand.findings.estimates import Cell, Estimate, Section, bounds_in_columns
from evenhand.findings.measures import Grouping, Measure
from evenhand.findings.scoring import ALWAYS, MISSING, SCORED, ScoringSpec, with_facts
from evenhand.findings.summed_statistics import Share
from evenhand.findings.totals import RunTotals
from evenhand.runs.store import RunReader

MOST = 10  # our choice: later iterations are not told apart
_NAMES = tuple(f"refined_{k}" for k in range(1, MOST + 1))
_COLUMNS = ("items", "iteration", "refined", "low", "high", "of", "missing", "worst_low",
            "worst_high")  # fmt: skip


class _RevisionCounts(ScoringSpec):
    """Whether an item was sent back once, twice and so on."""

    name = "refined"
    title = "sent back"
    clusters = "clusters"
    columns = ()
    measures = tuple(
        Measure(name=name, label=name, statistic=Share(pl.col("iterations") >= k), within=(0, 1))
        for k, name in enumerate(_NAMES, start=1)
    )
    groups = (Grouping(column="part", measures=_NAMES),)


def keeps_drafts(run: RunReader) -> bool:
    """Say whether the run's method sends drafts back, so that its drafts are versions of one
    answer."""
    return repairs_of(run.record.method["name"]) is not None


def refined(instrument: ScoringSpec, run: RunReader) -> tuple[Section, ...]:
    """Give the share of items that were refined in each iteration, of all and of each part of the
    items: conditions, buckets. An item that failed may have been refined or not."""
    if not keeps_drafts(run):
        return ()
    totals = RunTotals.of(_RevisionCounts(), _counted(instrument, run))
    # One further than anybody went, so that "nobody" has its interval too.
    last = min(
        MOST, 1 + max((k for k, estimate in _estimates(totals) if estimate.value), default=0)
    )
    rows = [("all", k, *_cells(estimate)) for k, estimate in _estimates(totals, last)]
    for part in totals.values_of("part"):
        rows += [
            (part, k, *_cells(estimate)) for k, estimate in _estimates(totals, last, part=part)
        ]
    title = "share of items refined in each iteration"
    return (Section(name="refined", title=title, columns=_COLUMNS, rows=tuple(rows)),)


def _estimates(totals: RunTotals, last: int = MOST, **where: str) -> list[tuple[int, Estimate]]:
    """Give each iteration with the share of items that were refined in it."""
    counted = enumerate(_RevisionCounts.measures[:last], start=1)
    return [(k, totals.estimate(measure, **where)) for k, measure in counted]


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    worst = bounds_in_columns(estimate.bounds)
    ends = (
        (worst["worst_low"], worst["worst_high"])
        if estimate.bounds
        else (estimate.value, estimate.value)
    )
    return estimate.value, estimate.low, estimate.high, estimate.n, worst["missing"], *ends


def _counted(instrument: ScoringSpec, run: RunReader) -> Iterator[pl.DataFrame]:
    """Yield how often each item was sent back: its method says so, or has a draft for each time."""
    score = instrument.scoring(run)
    by = instrument.covered_by or next((grouping.column for grouping in instrument.groups), None)
    element = pl.element()
    value = element.filter(element.struct.field("name") == "iterations").struct.field("value")
    reported = pl.col("scores_after").list.eval(value).list.first()
    answered = pl.col("status") == "answered"
    times = pl.coalesce(reported, pl.col("drafts").list.len().cast(pl.Float64) - 1)
    columns = (*ALWAYS, *instrument.columns, "tags", "scores_after", "drafts")
    for rows in run.result_batches(tuple(dict.fromkeys(columns))):
        sent = rows.select(
            "item_id",
            state=pl.when(answered).then(pl.lit(SCORED)).otherwise(pl.lit(MISSING)),
            iterations=pl.when(answered).then(times),
        )
        scored = score(with_facts(rows, instrument))
        part = pl.lit(None, pl.String) if by is None else pl.col(by)
        yield scored.select("item_id", "cluster", part=part).join(sent, on="item_id")
