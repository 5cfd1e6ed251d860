"""The rows of a run become numbers: one row per item with what each measure needs, and what is
missing."""

from collections.abc import Mapping, Sequence

import polars as pl

from evenhand.findings.measures import Grouping, Measure
from evenhand.findings.scoring import SCORED, ScoringSpec, outcomes_of
from evenhand.runs.store import RunReader

MASKED = "masked"


def keys_of(instrument: ScoringSpec, groups: Sequence[Grouping] | None = None) -> list[str]:
    """List the columns that rows are summed by: groups and clusters."""
    grouped = [grouping.column for grouping in (instrument.groups if groups is None else groups)]
    return list(dict.fromkeys([MASKED, *grouped, "cluster", *instrument.also_clusters]))


def row_values(outcomes: pl.DataFrame, instrument: ScoringSpec) -> pl.DataFrame:
    """Give one row per item with nothing but its keys and the numbers that the measures need."""
    if MASKED not in outcomes.columns:
        outcomes = outcomes.with_columns(pl.lit(False).alias(MASKED))
    outcomes = outcomes.with_columns(pl.col(MASKED).fill_null(False))  # not known is not masked
    numbers = {name: expr for m in instrument.measures for name, expr in m.columns().items()}
    for measure in instrument.measures:
        numbers |= {missing_of(measure): _is_missing(measure), **_missing_in_parts(measure)}
    if numbers.keys() <= set(outcomes.columns):
        return outcomes  # they are such rows already: means over several runs
    further = [name for name in (instrument.transitions, instrument.covered_by) if name]
    names = dict.fromkeys(["item_id", "state", *keys_of(instrument), *further])
    return outcomes.select(*names, **numbers)


def values_per_item(instrument: ScoringSpec, run: RunReader) -> pl.DataFrame:
    """Give columns item_id, state, and one for each measure that has a number per item: null where
    it is missing, where the measure is not about the item, and where the item is masked for it. A
    ratio of sums has none, nor has what is counted over the texts of a cluster."""
    rows = row_values(outcomes_of(instrument, run), instrument)
    values = {}
    for measure in instrument.measures:
        column = f"{measure.name}.value"
        kind = rows.schema.get(column)
        if kind is not None and (kind.is_numeric() or kind == pl.Boolean):
            counts = rows_of(instrument, measure, {}) & ~pl.col(missing_of(measure))
            values[measure.name] = pl.when(counts).then(pl.col(column).cast(pl.Float64))
    return rows.select("item_id", "state", **values)


def rows_of(instrument: ScoringSpec, measure: Measure | None, where: Mapping[str, str]) -> pl.Expr:
    """Say which rows a measure is computed from: those of a group, without the masked ones if the
    measure uses what is wrong with them."""
    masks = measure is not None and measure.name in instrument.masked
    rows = ~pl.col(MASKED) if masks else pl.lit(value=True)
    for column, value in where.items():
        rows &= pl.col(column) == value
    return rows


def missing_of(measure: Measure) -> str:
    """Name the column that says whether a row's value is missing."""
    return f"{measure.name}.missing"


def _is_missing(measure: Measure) -> pl.Expr:
    """A value is missing where the row has no score, or the measure says that it was lost, and the
    measure is about it, or may be: whether it is can depend on the answer."""
    lost = pl.col("state") != SCORED
    if measure.lost is not None:
        lost |= measure.lost.fill_null(False)
    return lost if measure.where is None else lost & measure.where.fill_null(True)


def _missing_in_parts(measure: Measure) -> dict[str, pl.Expr]:
    """A missing row belongs to a share if what is known of it does not say otherwise."""
    lost = _is_missing(measure)
    return {
        f"{missing_of(measure)}{index}": lost & (below.cast(pl.Float64) != 0).fill_null(True)
        for index, below in enumerate(measure.statistic.denominators())
    }
