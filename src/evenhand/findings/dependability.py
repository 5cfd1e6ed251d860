"""The dependability of a measure says which share of its variance over runs belongs to the object
that it should tell apart: the item, or the system."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenhand.errors import Undefined
from evenhand.findings.found import Estimate
from evenhand.findings.measures import MeanOfClusters, Measure
from evenhand.findings.scored import SCORED, Scored
from evenhand.findings.totals import cluster_values, row_values
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.generalizability import (
    ITEM,
    Crossed,
    components,
    dependability,
    totals_of,
)
from evenhand.statistics.proportions import zero_event_upper

LEAST = 0.5  # our choice: below it, more than half of what a score shows is not its object
_DRAWS = 2_000  # our choice: an interval's ends to about a hundredth, in a second
_REST = " and what is left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part is the variance of one effect, and its share of all; `negative` says that it came out
    below 0 and is set to 0."""

    effect: str
    variance: float
    share: float | None
    negative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependability:
    """The dependability of one measure: where its variance lies, and Φ, the share of it that
    belongs to the object."""

    measure: str
    items: int  # that have a value in every run
    incomplete: int  # that lack one in some run
    parts: tuple[Part, ...]
    one_run: Estimate  # Φ of a single run
    as_run: Estimate  # Φ of the mean over these runs
    worst: Estimate  # the same if what is missing disagreed as far as it can

    @property
    def shown(self) -> bool:
        """Φ is shown to be 0.5 or more, whatever the missing answers were."""
        return self.worst.low is not None and self.worst.low >= LEAST


def of_measure(
    instrument: Scored,
    measure: Measure,
    outcomes: Sequence[pl.DataFrame],
    facets: Crossed,
    of: str,
) -> Dependability:
    """Split the variance of a measure over runs, one frame of outcomes each."""
    table = _values(instrument, measure, outcomes)
    numbers = table.drop("item_id", "cluster").to_numpy().astype(np.float64)
    known = ~np.isnan(numbers).any(axis=1)
    clusters = table["cluster"].to_numpy()
    complete, named = numbers[known], clusters[known]
    one, as_run = (
        _phi(measure, complete, named, facets, of, sizes)
        for sizes in (dict.fromkeys(facets.sizes, 1), facets.sizes)
    )
    worst = as_run
    if not known.all():
        filled = _disagreeing(numbers, measure.within)
        worst = _phi(measure, filled, clusters, facets, of, facets.sizes)
    return Dependability(
        measure=measure.name,
        items=int(known.sum()),
        incomplete=int((~known).sum()),
        parts=_parts(complete, facets),
        one_run=one,
        as_run=as_run,
        worst=worst,
    )


def _values(instrument: Scored, measure: Measure, outcomes: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Give item_id, cluster, and the value of each run, null where it has none. Of a measure with
    one number per cluster, the cluster is the item."""
    long = []
    for place, rows in enumerate(outcomes):
        about = pl.lit(True) if measure.where is None else measure.where
        unscored = pl.col("state") != SCORED  # what an answer would say is not known of it
        values = row_values(rows.filter(about.fill_null(unscored)), instrument)
        values = values.filter(~pl.col("masked"))
        if isinstance(measure.statistic, MeanOfClusters):
            every = values.select("cluster").unique(maintain_order=True)
            made = every.join(cluster_values(measure, values), on="cluster", how="left")
            values = made.with_columns(item_id="cluster")
        else:
            values = values.rename({f"{measure.name}.value": "value"})
        kept = values.select("item_id", "cluster", pl.col("value").cast(pl.Float64))
        long.append(kept.with_columns(run=pl.lit(f"run{place}")))
    wide = pl.concat(long).pivot("run", index=["item_id", "cluster"], values="value")
    missing = [f"run{n}" for n in range(len(outcomes)) if f"run{n}" not in wide.columns]
    full = wide.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)
    return full.select("item_id", "cluster", *(f"run{n}" for n in range(len(outcomes))))


def _phi(
    measure: Measure,
    values: np.ndarray,
    clusters: np.ndarray,
    facets: Crossed,
    of: str,
    sizes: Mapping[str, int],
) -> Estimate:
    """Estimate Φ; its interval comes from resampling clusters of items."""
    name, counted = measure.name, {**sizes, ITEM: max(len(values), 1)}

    def phi(totals: np.ndarray) -> np.ndarray:
        return dependability(components(totals, facets), of, counted)

    try:
        if not np.isfinite(values).all():
            raise Undefined("the measure has no ends, so that a missing value has no worst case")
        names, places = np.unique(clusters, return_inverse=True)
        table = np.zeros((len(names), 1 + facets.runs + facets.runs**2))
        np.add.at(table, places, totals_of(values))
        drawn = cluster_bootstrap(table, phi, kind="percentile", draws=_DRAWS)
    except Undefined as reason:
        said = str(reason) if np.ptp(values) else "every answer has the same value"
        return Estimate(name=name, value=None, undefined=said)
    low = drawn.low if not drawn.no_spread else _unseen(measure, values, len(names))
    return Estimate(
        name=name, value=drawn.estimate, low=low, high=max(drawn.high, drawn.estimate),
        n=len(values), clusters=len(names),
    )  # fmt: skip


def _unseen(measure: Measure, values: np.ndarray, clusters: int) -> float | None:
    """Compute the least Φ where all runs agreed: so many clusters still allow that a share of the
    answers differs by the whole range, which is an error variance of half its square."""
    reach = measure.within[1] - measure.within[0]
    if not math.isfinite(reach):
        return None
    variance, error = float(values.var()), zero_event_upper(clusters) * reach**2 / 2
    return variance / (variance + error) if variance else 0.0


def _disagreeing(numbers: np.ndarray, within: tuple[float, float]) -> np.ndarray:
    """Fill what is missing of each item so that its runs disagree as far as they can; a measure
    without ends stays as it is."""
    low, high = within
    filled = numbers.copy()
    if not math.isfinite(high - low):
        return filled
    for place in np.flatnonzero(np.isnan(numbers).any(axis=1)):
        gone = np.flatnonzero(np.isnan(numbers[place]))
        tried = []
        for at_high in range(len(gone) + 1):
            row = numbers[place].copy()
            row[gone[:at_high]], row[gone[at_high:]] = high, low
            tried.append(row)
        filled[place] = max(tried, key=np.var)
    return filled


def _parts(values: np.ndarray, facets: Crossed) -> tuple[Part, ...]:
    if len(values) < 2:
        return ()
    totals = totals_of(values).sum(axis=0, keepdims=True)
    found = {effect: float(v[0]) for effect, v in components(totals, facets).items()}
    whole = sum(max(value, 0.0) for value in found.values())
    last = len(facets.levels) + 1
    return tuple(
        Part(
            effect=" × ".join(effect) + _REST * (len(effect) == last),
            variance=max(value, 0.0),
            share=max(value, 0.0) / whole if whole else None,
            negative=value < 0,
        )
        for effect, value in found.items()
    )
