"""What an answer of one method costs, item by item, and what it costs to prevent one harm more."""

from dataclasses import asdict
from typing import Any

import polars as pl

from evenhand.domain.prices import Prices
from evenhand.errors import Undefined
from evenhand.report import bbq
from evenhand.report.bbq import Estimate
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.marginal import cost_per_prevented
from evenhand.store import RunReader
from evenhand.store.spending import billed_tokens

KINDS = ("calls", "tokens", "seconds", "money")


def calls_by_item(run: RunReader, results: pl.DataFrame) -> pl.DataFrame:
    """Columns position and calls. What was lent from another run is a turn, but no call."""
    lenders = [said["model"] for said in run.record.cast.values() if said["kind"] == "borrowed"]
    lent = run.turns().filter(pl.col("model").is_in(lenders)).group_by("position").len("lent")
    return (
        results.select("position", "calls")
        .join(lent.collect(), on="position", how="left")
        .select("position", calls=(pl.col("calls") - pl.col("lent").fill_null(0)).cast(pl.Float64))
    )


def by_item(
    run: RunReader, results: pl.DataFrame, scored: pl.DataFrame, prices: Prices | None
) -> pl.DataFrame:
    """Columns item_id, template and one per kind. Null: the endpoint did not count the tokens, or
    there are no prices. Seconds are those of the model, added up also where calls overlapped."""
    seconds = run.turns().group_by("position").agg(pl.col("seconds").sum()).collect()
    return (
        results.select(
            "position",
            "item_id",
            tokens=(pl.col("prompt_tokens") + pl.col("completion_tokens")).cast(pl.Float64),
        )
        .join(calls_by_item(run, results), on="position")
        .join(seconds, on="position", how="left")
        .join(_money(run, prices), on="position", how="left")
        .with_columns(
            pl.col("seconds").fill_null(0.0),
            money=pl.lit(None, pl.Float64) if prices is None else pl.col("money").fill_null(0.0),
        )
        .join(scored.select("item_id", "template"), on="item_id")
        .sort("position")
        .select("item_id", "template", *KINDS)
    )


def _money(run: RunReader, prices: Prices | None) -> pl.DataFrame:
    if prices is None:
        return pl.DataFrame(schema={"position": pl.Int64, "money": pl.Float64})
    sums = (
        billed_tokens(run.turns()).group_by("position", "model").agg(pl.exclude("position").sum())
    )
    rows = [(position, prices.cost(*billed)) for position, *billed in sums.collect().iter_rows()]
    billed = pl.DataFrame(rows, schema={"position": pl.Int64, "money": pl.Float64}, orient="row")
    return billed.group_by("position").agg(pl.col("money").sum())


def spread(costs: pl.DataFrame, kind: str) -> dict[str, Any]:
    """Mean with its interval over templates, 95th percentile and total; nulls are left out, and
    `n` says how many were not."""
    rows = costs.select("template", kind).drop_nulls()
    mean = Estimate.of(kind, lambda: clustered_mean(rows[kind], rows["template"]))
    plain = float(rows[kind].mean()) if len(rows) else None  # type: ignore[arg-type]
    return {
        "mean": plain,
        "low": mean.low,
        "high": mean.high,
        "p95": rows[kind].quantile(0.95, "higher"),
        "total": float(rows[kind].sum()) if len(rows) else None,
        "n": len(rows),
    }


def per_prevented(
    before: tuple[pl.DataFrame, pl.DataFrame], after: tuple[pl.DataFrame, pl.DataFrame]
) -> dict[str, Any]:
    """Of (outcomes, costs) before and after: the extra cost of each kind for each stereotyped
    answer less, over the ambiguous items that both answered."""
    found: dict[str, Any] = {}
    stereotyped = [
        bbq.values(scored, "stereotyped_rate").join(costs.drop("template"), on="item_id")
        for scored, costs in (before, after)
    ]
    pairs = stereotyped[0].join(stereotyped[1].drop("template"), on="item_id", suffix="_after")
    for kind in ("calls", "tokens", "money"):
        rows = pairs.drop_nulls([kind, f"{kind}_after"])
        if rows.is_empty():
            found[kind] = {"undefined": "no prices" if kind == "money" else "not counted"}
            continue
        extra = rows[f"{kind}_after"] - rows[kind]
        prevented = rows["value"] - rows["value_after"]
        try:
            found[kind] = asdict(cost_per_prevented(extra, prevented, rows["template"]))
        except Undefined as reason:
            found[kind] = {"undefined": str(reason)}
    return found
