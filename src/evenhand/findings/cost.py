"""This module says what an answer cost: calls, tokens and seconds of the model's time."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from evenhand.core.prices import Prices
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.spending import spent_on

_P95 = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A spread holds the mean, the 95th percentile and the total over items; None where nothing was
    counted."""

    mean: float | None = None
    p95: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A cost says what the items of a run took, each and all together."""

    calls: Spread
    tokens: Spread
    seconds: Spread
    items_without_token_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """Money says what a run cost; None without prices."""

    cost: float | None
    currency: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherCost:
    """The cost of a run within the folder of another, such as a judge of its texts."""

    calls: int
    money: Money


def further(
    run: RunReader, folders: Iterable[str], prices: Prices | None
) -> dict[str, FurtherCost]:
    """Compute the cost of runs that lie within a run's folder.

    Args:
        run: The run that holds the others.
        folders: The names of the inner folders; those that do not exist are skipped.
        prices: The price table; None if calls alone are wanted.

    Returns:
        The cost of each inner run by the name of its folder.
    """
    folder = open_folder(run.path)
    inner = {
        name: RunReader(f"{run.path}/{name}")
        for name in folders
        if folder.exists(f"{name}/run.json")
    }
    return {
        name: FurtherCost(calls=reader.totals().calls, money=money(reader, prices))
        for name, reader in inner.items()
    }


def cost(run: RunReader) -> Cost:
    """Compute what a run took. It is read once; calls and tokens are counted by value, and of the
    seconds one number per item is held, so that a run of ten million items takes some hundred
    megabytes."""
    calls: Counter[int] = Counter()
    tokens: Counter[int | None] = Counter()
    for rows in run.result_batches(("calls", "prompt_tokens", "completion_tokens")):
        calls.update(_by_value(rows["calls"]))
        tokens.update(_by_value(rows["prompt_tokens"] + rows["completion_tokens"]))
    unknown = tokens.pop(None, 0)
    return Cost(
        calls=spread_of_counts(calls),
        tokens=spread_of_counts(tokens),  # type: ignore[arg-type]
        seconds=spread(_seconds(run)),
        items_without_token_count=unknown,
    )


def cost_of_runs(runs: Sequence[RunReader]) -> Cost:
    """Compute what an answer took on average over several runs, and all of them together."""
    costs = [cost(run) for run in runs]
    if len(costs) == 1:
        return costs[0]
    return Cost(
        calls=_over_runs([run_cost.calls for run_cost in costs]),
        tokens=_over_runs([run_cost.tokens for run_cost in costs]),
        seconds=_over_runs([run_cost.seconds for run_cost in costs]),
        items_without_token_count=sum(run_cost.items_without_token_count for run_cost in costs),
    )


def _over_runs(spreads: Sequence[Spread]) -> Spread:
    means = [spread.mean for spread in spreads if spread.mean is not None]
    if len(means) < len(spreads):
        return Spread()
    total = sum(spread.total or 0.0 for spread in spreads)
    return Spread(mean=sum(means) / len(means), total=total)


def _by_value(column: pl.Series) -> dict[Any, int]:
    return dict(column.value_counts().iter_rows())


def _seconds(run: RunReader) -> pl.Series:
    """The model's time of each item that asked somebody. The turns of an item may lie in two parts
    of the run, so times are added up by the item's position."""
    times = np.empty(0)
    for batch in run.seconds_by_item():
        places, seconds = batch["position"].to_numpy(), batch["seconds"].to_numpy()
        longer = places.max() + 1 - len(times) if len(places) else 0
        if longer > 0:
            times = np.append(times, np.full(max(longer, len(times)), np.nan))
        times[places] = np.nan_to_num(times[places]) + seconds
    return pl.Series(times[~np.isnan(times)])


def spread_of_counts(counts: Mapping[int, int]) -> Spread:
    """The spread of whole numbers of which only is known how often each was seen."""
    if not counts:
        return Spread()
    values = np.array(sorted(counts))
    up_to = np.cumsum([counts[value] for value in values.tolist()])
    total, n = sum(value * count for value, count in counts.items()), int(up_to[-1])
    rank = math.ceil(_P95 * (n - 1))  # as `quantile(…, "higher")` has it
    p95 = float(values[np.searchsorted(up_to, rank, side="right")])
    return Spread(mean=total / n, p95=p95, total=float(total))


def spread(column: pl.Series) -> Spread:
    if column.is_empty():
        return Spread()
    return Spread(
        mean=float(column.cast(pl.Float64).mean() or 0.0),  # type: ignore[arg-type]
        p95=column.cast(pl.Float64).quantile(_P95, "higher"),
        total=float(column.sum()),
    )


def money(run: RunReader, prices: Prices | None) -> Money:
    if prices is None:
        return Money(cost=None, currency=None)
    return Money(cost=spent_on(str(run.path), prices).cost, currency=prices.currency)
