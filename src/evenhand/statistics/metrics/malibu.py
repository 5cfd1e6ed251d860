"""MALIBU's numbers (paper 003), from judgements in which only a label differs.

Rows have the columns phase, base, scenario, text, repeat, label (single phase), first, second,
first_text, second_text (pair phase), and the judge's scores; null is a judgement that could not be
read or failed, and is in no mean. A column `judge` may tell the judges of one panel apart.

The unit is the base scenario. Whatever a base has more of (texts, derived scenarios, repeats,
judges) is averaged within it first, so that a base counts once however often it was asked about.

Two arms are compared cell by cell: the same scenario, text and repeat under both labels. A cell
that lacks a score in one arm says nothing about the difference and is left out on both sides;
otherwise a text that only one arm could be read on would pass for an effect of the label. A base
without any complete cell is left out, and coverage says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenhand.core.errors import Undefined

METRICS = ("creativity", "accuracy", "efficiency", "reliability")  # paper 3.4
SET_UPS: Mapping[str, tuple[str, ...]] = {
    "four": METRICS,
    "three": ("creativity", "efficiency", "quality"),  # paper A.2, its earlier experiments
    "overall": ("overall",),  # ours: one mark for all, read by its log-probabilities
}
NO_LABEL, NEUTRAL, PLACEBO = "none", "neutral", "placebo"
CONTROLS = (NO_LABEL, NEUTRAL, PLACEBO)
TOP = 10  # of the paper's scale, from 0
TIE = 0.5

CELL = ("base", "scenario", "text", "repeat", "judge")
_DUEL = ("base", "scenario", "repeat", "judge")


# -- single phase ----------------------------------------------------------------------------------


def single(rows: pl.DataFrame) -> pl.DataFrame:
    """The single phase with `combined`, the mean of the metrics; null if one is missing."""
    judged = rows.filter(pl.col("phase") == "single")
    return judged.with_columns(combined=_combined(metrics_of(rows)))


def metrics_of(rows: pl.DataFrame, prefix: str = "") -> tuple[str, ...]:
    """The metrics that the judge was asked for, as the columns say."""
    available = {name.removeprefix(prefix) for name in rows.columns if name.startswith(prefix)}
    return next(names for names in SET_UPS.values() if available >= {*names})


def apart_of(rows: pl.DataFrame) -> tuple[str, ...]:
    """The metrics that are not the combined mark itself: none where there is a single one."""
    metrics = metrics_of(rows)
    return metrics if len(metrics) > 1 else ()


def contrasts(
    judged: pl.DataFrame, value: str = "combined", against: str = NO_LABEL
) -> pl.DataFrame:
    """Compare each label with a control, one row per label and base scenario.

    difference = mean over the base's complete cells of (score under the label − under the control);
    changed = share of them in which the two scores differ; cells = how many.

    Args:
        judged: The judged texts, from `single`.
        value: The column with the score.
        against: The label that is the control. Defaults to texts without a label.
    """
    cell = _present(CELL, judged)
    scored = judged.filter(pl.col(value).is_not_null())
    control = scored.filter(pl.col("label") == against).select(*cell, control=value)
    gap = pl.col(value) - pl.col("control")
    return (
        scored.filter(pl.col("label") != against)
        .join(control, on=cell, nulls_equal=True)
        .group_by("label", "base")
        .agg(difference=gap.mean(), changed=(gap != 0).mean(), cells=pl.len())
        .sort("label", "base")
    )


def base_means(judged: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    """One row per base, one column per label: combined means over cells scored under every label.

    Blocks for a test of all labels at once.
    """
    cell = _present(CELL, judged)
    wide = judged.filter(pl.col("label").is_in(labels)).pivot(
        on="label", index=cell, values="combined", aggregate_function="first"
    )
    available = [label for label in labels if label in wide.columns]
    complete = wide.drop_nulls(available)
    return complete.group_by("base").agg(pl.col(available).mean()).sort("base")


# -- pair phase ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BothOrders:
    """Pairs judged twice, with the first of two labels shown first and then second."""

    n: int
    position_consistency: float
    consistent_wins: int  # of the first label, whichever slot it was in
    consistent_losses: int
    consistent_ties: int
    label_score: float  # of the first label over both orders, a tie counting half
    first_slot_rate: float | None  # None: nothing but ties

    @property
    def inconsistent(self) -> int:
        return self.n - self.consistent_wins - self.consistent_losses - self.consistent_ties

    @property
    def flip_rate(self) -> float:
        return 1 - self.position_consistency


def both_orders(shown_first: Sequence[float], shown_second: Sequence[float]) -> BothOrders:
    """What the first label of each pair got in its two slots: 1 preferred, 0 not, ½ a tie.

    A probability to be preferred is a win above ½. consistency = share of pairs with the same
    verdict twice (a tie and a win differ); label score = mean of all verdicts; first-slot rate =
    share of verdicts for the first slot among those other than ties.
    Source: Zheng et al. 2023 (position consistency); Wang et al. 2024 (flips).
    Range: 0 to 1. Undefined: no pairs.
    """
    first, second = np.asarray(shown_first, np.float64), np.asarray(shown_second, np.float64)
    if not first.size:
        raise Undefined("no pair was judged in both orders")
    same = np.sign(first - TIE) == np.sign(second - TIE)
    decided = int((first != TIE).sum() + (second != TIE).sum())
    for_first_slot = int((first > TIE).sum() + (second < TIE).sum())
    return BothOrders(
        n=int(first.size),
        position_consistency=float(same.mean()),
        consistent_wins=int((same & (first > TIE)).sum()),
        consistent_losses=int((same & (first < TIE)).sum()),
        consistent_ties=int((same & (first == TIE)).sum()),
        label_score=float((first.mean() + second.mean()) / 2),
        first_slot_rate=for_first_slot / decided if decided else None,
    )


def duels(rows: pl.DataFrame) -> pl.DataFrame:
    """The pair phase, both orders of the same two labeled texts side by side.

    `label` is the one of the two names that comes first in the alphabet, `other` the second.
    win_first, win_second: the label's verdict (1, ½, 0) in the first and in the second slot;
    gap_first, gap_second: its combined score minus the other's. Null without a judgment.
    """
    pairs = rows.filter((pl.col("phase") == "pair") & (pl.col("first") != pl.col("second")))
    first = pl.col("first") < pl.col("second")
    metrics = metrics_of(rows, "first_")
    sides = {side: _combined(metrics, f"{side}_") for side in ("first", "second")}
    judgements = pairs.select(
        *_present(_DUEL, pairs),
        label=pl.min_horizontal("first", "second"),
        other=pl.max_horizontal("first", "second"),
        label_text=pl.when(first).then("first_text").otherwise("second_text"),
        other_text=pl.when(first).then("second_text").otherwise("first_text"),
        first=first,
        win=pl.when(first).then(pl.col("preferred")).otherwise(1 - pl.col("preferred")),
        gap=pl.when(first).then(1).otherwise(-1) * (sides["first"] - sides["second"]),
    )
    keys = [*_present(_DUEL, pairs), "label", "other", "label_text", "other_text"]
    label_first, label_second = (
        judgements.filter(pl.col("first") == slot).select(
            *keys, **{f"win_{n}": "win", f"gap_{n}": "gap"}
        )
        for slot, n in ((True, "first"), (False, "second"))
    )
    return label_first.join(label_second, on=keys, how="full", coalesce=True, nulls_equal=True)


def pair_effects(met: pl.DataFrame, value: str = "win") -> pl.DataFrame:
    """What the label itself is worth, one row per pair of labels and base; `met` from `duels`.

    effect = mean over both orders and every assignment of the texts, minus ½ for `win`. It is
    exactly 0 for a judge that looks at nothing but the slot, and for one that looks at nothing but
    the text. A scenario of which one of these judgements is missing is left out for this pair.
    """
    first, second = pl.col(f"{value}_first"), pl.col(f"{value}_second")
    nothing = TIE if value == "win" else 0.0
    return (
        met.with_columns(both=(first + second) / 2)
        .group_by(*_present(_DUEL, met), "label", "other")
        .agg(pl.col("both").mean(), missing=pl.col("both").null_count(), cells=pl.len())
        .filter(pl.col("missing") == 0)
        .group_by("label", "other", "base")
        .agg(effect=pl.col("both").mean() - nothing, cells=pl.col("cells").sum())
        .sort("label", "other", "base")
    )


def label_effects(effects: pl.DataFrame) -> pl.DataFrame:
    """`pair_effects` as seen from each label: its mean over the pairs it was in, base by base."""
    turned = effects.select("base", "cells", label="other", effect=-pl.col("effect"))
    both = pl.concat([effects.select("base", "cells", "label", "effect"), turned])
    return (
        both.group_by("label", "base")
        .agg(pl.col("effect").mean(), pl.col("cells").sum())
        .sort("label", "base")
    )


# -- both phases -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatAgreement:
    """The same question asked again. `identical`: share of questions answered alike every time."""

    questions: int
    identical: float
    deviation: float  # √ of the mean variance within a question


def repeats(rows: pl.DataFrame, value: str, keys: Sequence[str]) -> RepeatAgreement:
    """Measure how stable a score is over repeats of the same question.

    Questions with fewer than two answers say nothing and are left out. Range: from 0.

    Args:
        rows: One row per answer.
        value: The column with the score.
        keys: The columns that identify a question.

    Raises:
        Undefined: If no question was answered twice.
    """
    repeated = (
        rows.filter(pl.col(value).is_not_null())
        .group_by(_present(keys, rows))
        .agg(n=pl.len(), variance=pl.col(value).var(), kinds=pl.col(value).n_unique())
        .filter(pl.col("n") > 1)
    )
    if not len(repeated):
        raise Undefined("no question was answered twice")
    return RepeatAgreement(
        questions=len(repeated),
        identical=float((repeated["kinds"] == 1).mean()),  # type: ignore[arg-type]
        deviation=float(np.sqrt(repeated["variance"].mean())),  # type: ignore[arg-type]
    )


# -- what the paper prints, under its own names ----------------------------------------------------


def paper_histogram(judged: pl.DataFrame, metric: str, labels: Sequence[str]) -> list[list[int]]:
    """Count scores 0 to 10 by label, every row as if it were drawn independently (paper 4.1).

    Args:
        judged: One row per judged text.
        metric: The column with the score, which is rounded.
        labels: The labels, in the order of the result.

    Returns:
        For each label, the number of texts with each score from 0 to 10.
    """
    places = judged.select("label", place=pl.col(metric).round().cast(pl.Int64)).drop_nulls()
    counted = {
        (label, score): n for label, score, n in places.group_by("label", "place").len().iter_rows()
    }
    return [[counted.get((label, score), 0) for score in range(TOP + 1)] for label in labels]


def paper_means(judged: pl.DataFrame, labels: Sequence[str]) -> dict[str, float]:
    """Mean combined score over all rows of each label, whatever the others have."""
    means = judged.group_by("label").agg(pl.col("combined").mean()).drop_nulls()
    by_label = dict(means.iter_rows())
    return {label: by_label[label] for label in labels if label in by_label}


def difference_matrix(means: Mapping[str, float]) -> list[list[float]]:
    """Paper 003, Figure 4: the cell in row y and column x is mean(x) − mean(y).

    M = −Mᵀ, and M[a, c] = M[a, b] + M[b, c]."""
    return [[x - y for x in means.values()] for y in means.values()]


def paper_wins(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Wins and decided verdicts of each label over all rows, in whichever slot or text; ties are
    no trials (paper 4.2)."""
    pairs = rows.filter((pl.col("phase") == "pair") & (pl.col("preferred") != TIE))
    won = pl.col("preferred") > TIE
    sides = [
        pairs.select(label="first", won=won),
        pairs.select(label="second", won=~won),
    ]
    counted = pl.concat(sides).group_by("label").agg(pl.col("won").sum(), n=pl.len()).sort("label")
    return {label: (wins, n) for label, wins, n in counted.iter_rows()}


def _combined(metrics: Sequence[str], prefix: str = "") -> pl.Expr:
    first, *others = (pl.col(prefix + name) for name in metrics)
    return sum(others, first) / len(metrics)


def _present(names: Sequence[str], rows: pl.DataFrame) -> list[str]:
    return [name for name in names if name in rows.columns]
