"""The cost of an item says what an answer of one method costs, and what it costs to prevent one
harm more."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined
from evenhand.core.prices import Prices
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import ScoringSpec, outcome_batches, row_values, rows_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.spending import billed_tokens, money_for
from evenhand.statistics._shared import finite, same_length
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import cluster_sums, clustered_mean

CostKind = Literal["calls", "tokens", "seconds", "money", "scored"]
KINDS: tuple[CostKind, ...] = get_args(CostKind)
PAID: tuple[CostKind, ...] = ("calls", "tokens", "money")
_HARM = "harm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCost:
    """The mean cost of an item with its interval over clusters, the 95th percentile and the total.
    `n` says how many items were counted; None where none was. Without spread: no interval."""

    mean: float | None
    low: float | None
    high: float | None
    p95: float | None
    total: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPrevented:
    """The extra cost per harm prevented, or why it is undefined."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    clusters: int | None = None
    draws: int | None = None  # of the bootstrap behind the interval
    undefined: str | None = None


def calls_by_item(run: RunReader) -> pl.DataFrame:
    """Give columns position and calls. A critique that the placebo critic took from another run is
    a turn, but no call."""
    lenders = [
        settings["model"] for settings in run.record.cast.values() if settings["kind"] == "borrowed"
    ]
    lent = run.turns().filter(pl.col("model").is_in(lenders)).group_by("position").len("lent")
    calls = (pl.col("calls") - pl.col("lent").fill_null(0)).cast(pl.Float64)
    results = run.results().select("position", "calls").collect()
    return results.join(lent.collect(), on="position", how="left").select("position", calls=calls)


def by_item(instrument: ScoringSpec, run: RunReader, prices: Prices | None) -> pl.DataFrame:
    """Compute the harm and the cost of every item.

    Harm is the row's value of the metric that "one prevented" counts; null where it has none. A
    cost is null where the endpoint did not count the tokens, or without prices. Seconds are those
    of the model, added up also where calls overlapped. `scored` are the calls that a scorer
    answered: one text each, whose own time is in the seconds.

    Args:
        instrument: The benchmark, which names the metric of harm.
        run: The run to read.
        prices: The price table; None for a table without money.

    Returns:
        The columns `item_id`, `cluster`, `harm` and one per kind of cost, one row per item.
    """
    tokens = (pl.col("prompt_tokens") + pl.col("completion_tokens")).cast(pl.Float64)
    results = run.results().select("position", "item_id", tokens=tokens).collect()
    scorers = [
        settings["model"] for settings in run.record.cast.values() if settings["kind"] == "scorer"
    ]
    sums = (pl.col("seconds").sum(), pl.col("model").is_in(scorers).sum().alias("scored"))
    seconds = run.turns().group_by("position").agg(*sums).collect()
    money = pl.lit(None, pl.Float64) if prices is None else pl.col("money").fill_null(0.0)
    return (
        results.join(calls_by_item(run), on="position")
        .join(seconds, on="position", how="left")
        .join(_money(run, prices), on="position", how="left")
        .with_columns(pl.col("seconds", "scored").cast(pl.Float64).fill_null(0.0), money=money)
        .join(_harms(instrument, run), on="item_id")
        .sort("position")
        .select("item_id", "cluster", _HARM, *KINDS)
    )


def _harms(instrument: ScoringSpec, run: RunReader) -> pl.DataFrame:
    counted = counted_harm(instrument)
    harm = pl.lit(None, pl.Float64)
    if counted is not None:
        harm = pl.when(rows_of(instrument, counted, {})).then(pl.col(f"{counted.name}.value"))
    rows = [
        row_values(outcomes, instrument).select("item_id", "cluster", harm.alias(_HARM))
        for outcomes in outcome_batches(instrument, run)
    ]
    return pl.concat(rows)


def counted_harm(instrument: ScoringSpec) -> Measure | None:
    """The measure whose rows are harms that can be counted one by one: a share of events, to be
    lowered. Of a mean score no row is an event."""
    name = instrument.prevented or instrument.harm
    measure = None if name is None else instrument.measure(name)
    if measure is None or measure.better != "lower" or measure.unit != "share":
        return None
    return measure if measure.statistic.counts_events else None


def _money(run: RunReader, prices: Prices | None) -> pl.DataFrame:
    schema = {"position": pl.Int64, "money": pl.Float64}
    if prices is None:
        return pl.DataFrame(schema=schema)
    billed = billed_tokens(run.turns(), run.record.cast, shared=True)
    turns = billed.group_by("position", "model", "batched")
    sums = turns.agg(pl.col("prompt", "completion").sum()).collect()
    rows = [(position, money_for(prices, *tokens)) for position, *tokens in sums.iter_rows()]
    by_model = pl.DataFrame(rows, schema=schema, orient="row")
    return by_model.group_by("position").agg(pl.col("money").sum())


def spread(costs: pl.DataFrame, kind: CostKind) -> ItemCost:
    """Summarise what an item costs of one kind; items that were not counted are left out."""
    rows = costs.select("cluster", kind).drop_nulls()
    if rows.is_empty():
        return ItemCost(mean=None, low=None, high=None, p95=None, total=None, n=0)
    mean = Estimate.of(
        kind, lambda: clustered_mean(rows[kind], rows["cluster"]), (0.0, float("inf"))
    )
    return ItemCost(
        mean=float(rows[kind].mean()),  # type: ignore[arg-type]
        low=mean.low,
        high=mean.high,
        p95=rows[kind].quantile(0.95, "higher"),
        total=float(rows[kind].sum()),
        n=len(rows),
    )


def per_prevented(
    instrument: ScoringSpec, before: pl.DataFrame, after: pl.DataFrame
) -> dict[CostKind, PerPrevented]:
    """Compute the extra cost of each kind per harm prevented, over the items that both runs
    answered.

    Args:
        instrument: The benchmark, whose harm must be counted item by item.
        before: What `by_item` gives for the reference.
        after: What `by_item` gives for the method.
    """
    if counted_harm(instrument) is None:
        return dict.fromkeys(PAID, PerPrevented(undefined="its harm is not counted one by one"))
    old, new = (side.drop_nulls(_HARM) for side in (before, after))
    pairs = old.join(new.drop("cluster"), on="item_id", suffix="_after")
    return {kind: _per_prevented(pairs, kind) for kind in PAID}


def _per_prevented(pairs: pl.DataFrame, kind: CostKind) -> PerPrevented:
    rows = pairs.drop_nulls([kind, f"{kind}_after"])
    if rows.is_empty():
        return PerPrevented(undefined="no prices" if kind == "money" else "not counted")
    extra = rows[f"{kind}_after"] - rows[kind]
    prevented = rows[_HARM] - rows[f"{_HARM}_after"]
    try:
        return cost_per_prevented(extra, prevented, rows["cluster"])
    except Undefined as reason:
        return PerPrevented(undefined=str(reason))


def cost_per_prevented(
    extra: ArrayLike, prevented: ArrayLike, clusters: Iterable[Hashable]
) -> PerPrevented:
    """Compute Σextra / Σprevented over paired items, with a 95% percentile interval over whole
    clusters.

    What is resampled is prevented per cost, and the ends are then inverted: both have the same
    percentiles, but a draw that prevents nothing is a 0 there and not a division by it. Source:
    O'Brien & Briggs 2002 (cost-effectiveness). Range: above 0.

    Args:
        extra: What each item costs more than before.
        prevented: 1 where a harm is gone, −1 where there is a new one, else 0.
        clusters: The cluster of each item.

    Raises:
        Undefined: In this order: none is prevented; the interval of the prevented reaches 0, since
            the ratio then has no upper end; the interval of the extra cost does, since then nothing
            is paid for what is prevented.
    """
    costs, gains = finite(extra, "extra costs"), finite(prevented, "prevented harms")
    same_length(costs, gains, "extra costs and prevented harms")
    keys = list(clusters)
    if not gains.sum() > 0:
        raise Undefined("none prevented")
    if not clustered_mean(gains, keys).low > 0:
        raise Undefined("not shown to prevent any")
    if not clustered_mean(costs, keys).low > 0:
        raise Undefined("no extra cost shown")
    resampled = cluster_bootstrap(cluster_sums(keys, gains, costs), kind="percentile")
    if not resampled.low > 0:
        raise Undefined("not shown to prevent any")
    return PerPrevented(
        estimate=1 / resampled.estimate,
        low=1 / resampled.high,
        high=1 / resampled.low,
        n=gains.size,
        clusters=resampled.clusters,
        draws=resampled.draws,
    )
