"""This module says what an answer cost: calls, tokens and seconds of the model's time."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from evenhand.domain.prices import Prices
from evenhand.store import RunReader
from evenhand.store.folder import open_folder
from evenhand.store.spending import spent_on


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
class Further:
    """The cost of a run within the folder of another, such as a judge of its texts."""

    calls: int
    money: Money


def further(run: RunReader, folders: Iterable[str], prices: Prices | None) -> dict[str, Further]:
    """Compute what each of the runs within a run's folder took, of those that are there."""
    folder = open_folder(run.path)
    inner = {
        name: RunReader(f"{run.path}/{name}")
        for name in folders
        if folder.exists(f"{name}/run.json")
    }
    return {
        name: Further(calls=one.totals().calls, money=money(one, prices))
        for name, one in inner.items()
    }


def cost(run: RunReader) -> Cost:
    """Compute what a run took. It is read once, and of each item only its numbers are held."""
    columns = ("calls", "prompt_tokens", "completion_tokens")
    rows = pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.Int64)),
                      *run.result_batches(columns)])  # fmt: skip
    seconds = pl.concat(
        [pl.DataFrame(schema={"position": pl.Int64, "seconds": pl.Float64}), *run.seconds_by_item()]
    )
    if seconds["position"].n_unique() < len(seconds):  # an item whose turns lie in two parts
        seconds = seconds.group_by("position").agg(pl.col("seconds").sum())
    tokens = rows["prompt_tokens"] + rows["completion_tokens"]
    return Cost(
        calls=spread(rows["calls"]),
        tokens=spread(tokens.drop_nulls()),
        seconds=spread(seconds["seconds"]),
        items_without_token_count=tokens.null_count(),
    )


def spread(column: pl.Series) -> Spread:
    if column.is_empty():
        return Spread()
    return Spread(
        mean=float(column.cast(pl.Float64).mean() or 0.0),  # type: ignore[arg-type]
        p95=column.cast(pl.Float64).quantile(0.95, "higher"),
        total=float(column.sum()),
    )


def money(run: RunReader, prices: Prices | None) -> Money:
    if prices is None:
        return Money(cost=None, currency=None)
    return Money(cost=spent_on(str(run.path), prices).cost, currency=prices.currency)
