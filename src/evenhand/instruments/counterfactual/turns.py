"""Conversations of several turns: one answer per turn, its trend, and from which turn on an effect
is detected (design/counterfactual.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from evenhand.findings.estimates import Estimate
from evenhand.findings.ratios import SHOWN
from evenhand.instruments._contract import SCORED
from evenhand.instruments.counterfactual.contrasts import (
    AnswerPart,
    CounterfactualOutcome,
    Differences,
    LabelContrast,
    adjusted,
    contrasted,
    with_other,
)
from evenhand.instruments.counterfactual.tables import state_of

_MESSAGES = pl.Struct({"messages": pl.List(pl.Struct({"content": pl.String()}))})


def turn_rows(rows: pl.DataFrame, turns: Sequence[int]) -> pl.DataFrame:
    """Give one row per item and measured turn, with the prompt and the answer of that turn.

    An item that ended early has the answers before its end.

    Args:
        rows: Results with their facts.
        turns: Turns that are measured. Empty: each item has one answer.

    Returns:
        The rows with `turn`, and with `item`, the id of the item.
    """
    rows = rows.with_columns(item="item_id", place=pl.col("place").fill_null(""))
    if not turns:
        return rows.with_columns(turn=pl.lit(0, pl.Int64))
    messages = pl.col("conversation").str.json_decode(_MESSAGES).struct.field("messages")
    contents = messages.list.slice("opening").list.eval(pl.element().struct.field("content"))
    answered = pl.col("status") == "answered"
    words = pl.when(answered).then(pl.concat_list(contents, "text")).otherwise(contents)
    spoken = rows.with_columns(spoken=words)
    return pl.concat(
        spoken.with_columns(
            turn=pl.lit(turn, pl.Int64),
            item_id=pl.concat_str("item_id", pl.lit(f"#{turn}")),
            prompt=pl.col("spoken").list.get(2 * turn - 2, null_on_oob=True),
            text=pl.col("spoken").list.get(2 * turn - 1, null_on_oob=True),
        ).drop("spoken")
        for turn in turns
    )


def steps(turns: Sequence[int]) -> dict[int, float]:
    """Give the weight of each turn in the slope of a least-squares line over turns."""
    middle = sum(turns) / len(turns)
    spread = sum((turn - middle) ** 2 for turn in turns)
    return {turn: (turn - middle) / spread for turn in turns}


def per_item(answers: pl.DataFrame, turns: Sequence[int], *, signed: bool) -> pl.DataFrame:
    """Give one row per item. An item has a score where each of its measured turns has one.

    Args:
        answers: One row per answer, as `answers_of` gives them.
        turns: Turns that are measured. Empty: each item has one answer.
        signed: Whether the main outcome has a direction: the trend is that of the contrasts.

    Returns:
        `state`, the means over turns, what each turn contributes (`signed@1`, `excess@1`), and
        `trend`.
    """
    lost = pl.col("state").filter(pl.col("state") != SCORED).first()
    of_all = pl.col("excess", "own_placebo", "named", "^excess\\..*$").cast(pl.Float64)
    means = pl.when(of_all.null_count() == 0).then(of_all.mean())
    at_turn = [
        pl.col(name).filter(pl.col("turn") == turn).first().alias(f"{name}@{turn}")
        for name in ("signed", "excess")
        for turn in turns or (0,)
    ]
    trend = pl.lit(None, pl.Float64)
    if len(turns) > 1:
        value = pl.col("signed" if signed else "excess")
        slope = value * pl.col("turn").replace_strict(steps(turns), return_dtype=pl.Float64)
        trend = pl.when(value.null_count() == 0).then(slope.sum())
    items = answers.group_by("item", maintain_order=True).agg(
        means, *at_turn, state=lost.fill_null(SCORED), trend=trend
    )
    values = pl.exclude("item", "state")
    return items.with_columns(pl.when(pl.col("state") == SCORED).then(values)).rename(
        {"item": "item_id"}
    )


def trends(
    answers: pl.DataFrame,
    labels: Mapping[str, Sequence[str]],
    outcome: CounterfactualOutcome,
    parts: Sequence[AnswerPart],
) -> list[LabelContrast]:
    """Compute the change per turn of each contrast of two labels, adjusted over all of them.

    Args:
        answers: One row per answer.
        labels: Labels of each family in their order.
        outcome: The outcome that is contrasted.
        parts: Parts of the run, each a turn.

    Returns:
        The trends. Empty if fewer than two turns are measured.
    """
    weights = steps_of(parts)
    if not weights:
        return []
    pairs = with_other(answers, [outcome.name])
    results = []
    for family, names in labels.items():
        for left, right in contrasted(names):
            for place in dict.fromkeys(part.place for part in parts):
                part = AnswerPart(place)
                rows = pairs.filter(part.rows, family=family, label=left)
                if rows.is_empty():
                    continue
                table = rows.select(
                    "cluster",
                    "item",
                    "turn",
                    *outcome.differences(outcome.name, f"{outcome.name}:o"),
                )
                differences = _slopes(table, weights, outcome.reach)
                estimate = differences.estimate(f"{family}: {left}")
                results.append(
                    (LabelContrast(family, left, right, outcome, estimate, None, part), differences)
                )
    after = adjusted([(contrast.found, differences) for contrast, differences in results])
    return [
        replace(contrast, found=estimate)
        for (contrast, _), estimate in zip(results, after, strict=True)
    ]


def trend_of_excess(answers: pl.DataFrame, parts: Sequence[AnswerPart]) -> Estimate | None:
    """Compute the change per turn of the excess. None if fewer than two turns are measured.

    Args:
        answers: One row per answer about a label of a pair.
        parts: Parts of the run, each a turn.
    """
    weights, value = steps_of(parts), pl.col("excess")
    if not weights:
        return None
    table = answers.select("cluster", "item", "turn", value=value, low=value.fill_null(-1.0),
                           high=value.fill_null(1.0))  # fmt: skip
    differences = _slopes(table, weights, 1.0)
    (estimate,) = adjusted([(differences.estimate("trend"), differences)])
    return estimate


def steps_of(parts: Sequence[AnswerPart]) -> dict[int, float]:
    """Give the weights of the slope over the turns of these parts; empty of fewer than two."""
    turns = sorted({part.turn for part in parts})
    return steps(turns) if len(turns) > 1 else {}


def _slopes(table: pl.DataFrame, weights: Mapping[int, float], reach: float) -> Differences:
    """Give the slope of each item. A missing difference is at the end that speaks against it."""
    weight = pl.col("turn").replace_strict(dict(weights), return_dtype=pl.Float64)
    low, high, rising = pl.col("low"), pl.col("high"), weight > 0
    slopes = table.group_by("cluster", "item", maintain_order=True).agg(
        value=pl.when(pl.col("value").null_count() == 0).then((weight * pl.col("value")).sum()),
        low=(weight * pl.when(rising).then(low).otherwise(high)).sum(),
        high=(weight * pl.when(rising).then(high).otherwise(low)).sum(),
    )
    most = reach * sum(map(abs, weights.values()))
    return Differences.of(slopes, (-most, most))


def detected_from(found: Mapping[int, Estimate]) -> int | None:
    """Find the turn from which on an effect is detected: at it and at every measured turn after it,
    in the same direction.

    Args:
        found: Adjusted estimate of each measured turn.

    Returns:
        The turn. None if the effect is not detected at the last turn.
    """
    first, sign = None, 0.0
    for turn in sorted(found, reverse=True):
        estimate = found[turn]
        value = estimate.value or 0.0
        if state_of(estimate) != SHOWN or value * sign < 0:
            break
        first, sign = turn, value
    return first
