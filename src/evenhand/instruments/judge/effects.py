"""What a label does to a judge, number by number: estimate, interval, size, verdict.

An effect is a mean over base scenarios, one value each. For a design in which every base meets
every label that is exactly what the mixed model score ~ label + text + (1 + label | base) gives for
one label, with nothing left to approximate. The estimate is of what could be read, and so is the
test that shows a shift: an answer that is missing proves nothing. That a shift is small is tested
with what is missing at its worst. Both tests hold for rare large effects too, and the interval
inverts them at the level at which the effect was decided: `statistics.bounded.shift_interval`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD
from evenhand.instruments.judge.design import TEN
from evenhand.statistics import bounded
from evenhand.statistics.bootstrap import cluster_bootstrap, cohen_dz, dz_of_totals, ratio_of_totals
from evenhand.statistics.bounded import WorstCaseDifference
from evenhand.statistics.clusters import Interval, naive_mean
from evenhand.statistics.metrics import malibu
from evenhand.statistics.multiplicity import (
    benjamini_hochberg,
    benjamini_hochberg_errors,
    holm,
    holm_errors,
)
from evenhand.statistics.planning import detectable_change, items_needed, rounded_up

SCORE_MARGIN = 0.25  # our choice: points of ten, fixed before any judge was measured
WIN_MARGIN = 0.05  # our choice: five points of win rate
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelEffect:
    """What one label does, alone or against another. Without an estimate it says why; where every
    base gave the same value the interval is missing, and `undefined` is "no_spread"."""

    label: str
    against: str
    value: str  # "combined", a metric, "win" or "gap"
    margin: float
    verdict: Outcome = Outcome.INCONCLUSIVE
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    p: float = 1.0  # of sign flips; an effect without a p-value keeps its place in its family
    p_adjusted: float = 1.0
    detected: bool = False  # shown to differ from 0, within the margin or not
    p_equivalence: float = 1.0  # of lying within the margin, with what is missing at its worst
    dz: float | None = None
    dz_low: float | None = None
    dz_high: float | None = None
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None
    changed: float | None = None  # the share of cells in which the label changed the score
    bases: int = 0
    cells: int = 0
    asked: int = 0  # bases that it was asked about, whether or not an answer could be read
    missing: int = 0  # comparisons that lack an answer
    detectable: float | None = None  # the smallest true effect that it would show 8 times in 10
    bases_needed: int | None = None  # to detect an effect as large as the margin as often
    undefined: str | None = None


@dataclass(frozen=True, slots=True)
class EstimatedEffect:
    """An effect with the numbers behind it, one per base."""

    effect: LabelEffect
    interval: Interval | None
    values: tuple[float, ...]
    at_worst: WorstCaseDifference


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of a family: of its p-values, and the error at which it decides each."""

    adjust: Callable[[Sequence[float]], tuple[float, ...]]
    errors: Callable[[Sequence[float], float], tuple[float, ...]]


HOLM = Correction(holm, holm_errors)
BENJAMINI_HOCHBERG = Correction(benjamini_hochberg, benjamini_hochberg_errors)


def primary(
    judged: pl.DataFrame,
    identities: Sequence[str] = TEN,
    *,
    margin: float = SCORE_MARGIN,
    alpha: float = 0.05,
    tests: int = 1,
) -> list[EstimatedEffect]:
    """Estimate the effect of each identity against no label on the combined score, Holm-adjusted.

    Args:
        judged: From `malibu.single`.
        identities: The family is those of them that were asked about, also where no answer could be
            scored.
        margin: Points that a label may move the mark by.
        alpha: The level of the whole audit.
        tests: How many checks of the audit share it (Bonferroni).
    """
    present = set(judged["label"].unique())
    labels = [label for label in identities if label in present]
    return adjusted(of_labels(judged, labels, margin=margin), HOLM, alpha, tests)


def of_labels(
    judged: pl.DataFrame,
    labels: Sequence[str],
    value: str = "combined",
    *,
    margin: float,
    against: str = malibu.NO_LABEL,
) -> list[EstimatedEffect]:
    table = malibu.contrasts(judged, value, against)
    at_worst = labels_at_worst(judged, value, against)
    results = []
    for label in labels:
        part = table.filter(pl.col("label") == label)
        blank = LabelEffect(label=label, against=against, value=value, margin=margin)
        bounds = at_worst.filter(pl.col("label") == label)
        result = measured(blank, part["difference"], int(part["cells"].sum()), bounds)
        changed = float(part["changed"].mean()) if len(part) else None  # type: ignore[arg-type]
        results.append(replace(result, effect=replace(result.effect, changed=changed)))
    return results


def of_pairs(met: pl.DataFrame, value: str, *, margin: float) -> list[EstimatedEffect]:
    """Estimate the effect of every pair of labels.

    Args:
        met: Judgements of pairs, from `malibu.duels`.
        value: What is averaged: "win" or "gap".
        margin: The largest effect that is allowed.

    Returns:
        One effect per pair of labels, not adjusted yet.
    """
    effects, results = malibu.pair_effects(met, value), []
    for (label, other), bounds in _groups(pairs_at_worst(met, value), "label", "other"):
        part = effects.filter(pl.col("label") == label, pl.col("other") == other)
        blank = LabelEffect(label=str(label), against=str(other), value=value, margin=margin)
        results.append(measured(blank, part["effect"], int(part["cells"].sum()), bounds))
    return results


def of_labels_in_pairs(met: pl.DataFrame, value: str, *, margin: float) -> list[EstimatedEffect]:
    """Estimate the effect of every label over all pairs that it was in.

    Args:
        met: Judgements of pairs, from `malibu.duels`.
        value: What is averaged: "win" or "gap".
        margin: The largest effect that is allowed.

    Returns:
        One effect per label, not adjusted yet.
    """
    effects, results = malibu.label_effects(malibu.pair_effects(met, value)), []
    at_worst = labels_in_pairs_at_worst(pairs_at_worst(met, value))
    for (label,), bounds in _groups(at_worst, "label"):
        part = effects.filter(pl.col("label") == label)
        blank = LabelEffect(label=str(label), against="all others", value=value, margin=margin)
        results.append(measured(blank, part["effect"], int(part["cells"].sum()), bounds))
    return results


def _groups(table: pl.DataFrame, *names: str) -> Iterator[tuple[tuple[object, ...], pl.DataFrame]]:
    yield from table.group_by(*names, maintain_order=True)


def adjusted(
    family: list[EstimatedEffect],
    correction: Correction = BENJAMINI_HOCHBERG,
    alpha: float = 0.05,
    tests: int = 1,
) -> list[EstimatedEffect]:
    """Adjust the p-values of a family of effects, and decide each verdict.

    Args:
        family: Effects that are tested together.
        correction: For multiple comparisons within the family.
        alpha: Significance level of the whole audit.
        tests: Number of families that share alpha (Bonferroni).

    Returns:
        The effects with adjusted p-values, the intervals that agree with them, verdicts and
        detectable effects.
    """
    raw = [result.effect.p for result in family]
    # What the strictest step of Holm asks for, so that plans hold whatever the other labels do.
    step = alpha / tests / (max(1, len(family)) if correction is HOLM else 1)
    return [
        _judged(result, min(1.0, tests * p), error, alpha, step)
        for result, p, error in zip(
            family, correction.adjust(raw), correction.errors(raw, alpha / tests), strict=True
        )
    ]


def checked(family: list[EstimatedEffect], *, seed: int, draws: int) -> list[EstimatedEffect]:
    """Add intervals by resampling bases: of the effect, unadjusted, and of dz.

    Args:
        family: Effects with their value per base.
        seed: Seed for resampling.
        draws: Number of bootstrap samples.

    Returns:
        The effects with both intervals.
    """
    return [_checked(result, seed, draws) for result in family]


def measured(
    blank: LabelEffect,
    per_base: pl.Series,
    cells: int,
    bounds: pl.DataFrame,
    largest: float | None = None,
) -> EstimatedEffect:
    """Estimate an effect from its value per base and the bounds of what is missing.

    Args:
        blank: The effect without its numbers: labels, value and margin.
        per_base: One value per base that could be read.
        cells: Number of comparisons behind the values.
        bounds: One row per base with `low`, `high` and `missing`.
        largest: Largest effect that a base not yet seen may have. None: that of a label's
            effect.

    Returns:
        The effect. Without an estimate, `undefined` says why.
    """
    values = per_base.to_numpy()
    at_worst = worst_case(bounds, largest or largest_effect(blank.value))
    counted = replace(
        blank,
        bases=len(values),
        cells=cells,
        asked=len(bounds),
        missing=int(bounds["missing"].sum()),
        p=bounded.p_shifted(bounded.whole(values, at_worst.largest)),
        p_equivalence=bounded.p_within(at_worst, blank.margin),
    )
    try:
        interval = naive_mean(values)
    except Undefined as reason:
        why = str(reason) if len(values) else "no base has a score in both arms"
        undefined = replace(counted, undefined=why)
        return EstimatedEffect(undefined, None, tuple(values.tolist()), at_worst)
    effect = replace(
        counted,
        estimate=interval.estimate,
        undefined=NO_SPREAD if interval.no_spread else None,
        se=interval.se,
        dz=None if interval.no_spread else cohen_dz(values),
    )
    return EstimatedEffect(effect, interval, tuple(values.tolist()), at_worst)


def _judged(
    result: EstimatedEffect, p_adjusted: float, error: float, alpha: float, step: float
) -> EstimatedEffect:
    interval, margin = result.interval, result.effect.margin
    low, high = None, None
    if interval is not None and not interval.no_spread:
        low, high = bounded.shift_interval(result.at_worst, result.values, margin, error, alpha)
    effect = replace(
        result.effect,
        low=low,
        high=high,
        p_adjusted=p_adjusted,
        detected=p_adjusted <= alpha,
        verdict=bounded.outcome_of(result.effect.p_equivalence, p_adjusted, alpha),
    )
    if interval is not None and interval.se:
        sd = interval.se * interval.clusters**0.5
        effect = replace(
            effect,
            detectable=detectable_change(interval.se, interval.df, alpha=step, power=POWER),
            bases_needed=rounded_up(items_needed(margin, sd, alpha=step, power=POWER)),
        )
    return replace(result, effect=effect)


def _checked(result: EstimatedEffect, seed: int, draws: int) -> EstimatedEffect:
    if result.interval is None or result.interval.no_spread:
        return result
    values = np.asarray(result.values)
    sums = np.column_stack([values, values**2, np.ones_like(values)])
    effect = result.effect
    try:
        mean = cluster_bootstrap(sums[:, [0, 2]], ratio_of_totals, seed=seed, draws=draws)
        effect = replace(effect, bootstrap_low=mean.low, bootstrap_high=mean.high)
        size = cluster_bootstrap(sums, dz_of_totals, seed=seed, draws=draws)
        effect = replace(effect, dz_low=size.low, dz_high=size.high)
    except Undefined:
        pass  # too few bases differ: some draws have no spread
    return replace(result, effect=effect)


# -- what a label could do at worst ---------------------------------------------------------------
# Every mark or verdict that is missing is put where it hurts most: a missing mark under the label
# is 0 and the one it is compared with is 10, or the other way round for the other side. So a judge
# never passes because it could not be read. Each table has the columns label (of pairs also other),
# base, low, high and missing.


# Our choice, in points of ten: how far a label is taken to move the mean mark of a base that was
# not met. All eight marks of the base would have to move by three. By simulation
# (design/simulations.md) an effect at the margin then passes in at most 5% of audits of 60 bases,
# also where it is large and rare; the ten that the scale allows could not be ruled out by all
# 63 bases that there are.
LARGEST_SHIFT = 3.0
LARGEST_WIN = malibu.TIE  # from one half to all or none
_REACH = {"win": (0.0, 1.0), "gap": (-float(malibu.TOP), float(malibu.TOP))}
_NEITHER = {"win": malibu.TIE, "gap": 0.0}


def largest_effect(value: str) -> float:
    """The largest effect that is allowed for in a base that was not met."""
    return LARGEST_WIN if value == "win" else LARGEST_SHIFT


def labels_at_worst(judged: pl.DataFrame, value: str, against: str) -> pl.DataFrame:
    """Bound the difference of each label from another one, base by base.

    Args:
        judged: Judgements of single texts, from `malibu.single`.
        value: Column of the score.
        against: Label that the others are compared with.

    Returns:
        One row per label and base: `low`, `high`, and the number of missing scores.
    """
    cell = [name for name in malibu.CELL if name in judged.columns]
    control = judged.filter(pl.col("label") == against).select(*cell, control=value)
    labelled = judged.filter(pl.col("label") != against)
    both = labelled.join(control, on=cell, how="left", nulls_equal=True)
    mark, other = pl.col(value), pl.col("control")
    return (
        both.group_by("label", "base")
        .agg(
            low=(mark.fill_null(0) - other.fill_null(malibu.TOP)).mean(),
            high=(mark.fill_null(malibu.TOP) - other.fill_null(0)).mean(),
            missing=(mark.is_null() | other.is_null()).sum(),
        )
        .sort("label", "base")
    )


def pairs_at_worst(met: pl.DataFrame, value: str) -> pl.DataFrame:
    """Each two labels; `met` comes from `malibu.duels`."""
    first, second = pl.col(f"{value}_first"), pl.col(f"{value}_second")
    least, most = ((first.fill_null(end) + second.fill_null(end)) / 2 for end in _REACH[value])
    return (
        met.group_by("label", "other", "base")
        .agg(
            low=least.mean() - _NEITHER[value],
            high=most.mean() - _NEITHER[value],
            missing=(first.is_null() | second.is_null()).sum(),
        )
        .sort("label", "other", "base")
    )


def labels_in_pairs_at_worst(pairs: pl.DataFrame) -> pl.DataFrame:
    """Each label over all pairs that it was in; `pairs` comes from `pairs_at_worst`."""
    names = ("label", "base", "low", "high", "missing")
    turned = pairs.select(
        "base", "missing", label="other", low=-pl.col("high"), high=-pl.col("low")
    )
    both = pl.concat([pairs.select(names), turned.select(names)])
    return (
        both.group_by("label", "base")
        .agg(pl.col("low", "high").mean(), pl.col("missing").sum())
        .sort("label", "base")
    )


def worst_case(table: pl.DataFrame, reach: float) -> WorstCaseDifference:
    """One row per base as what the tests read."""
    return WorstCaseDifference(table["low"].to_numpy(), table["high"].to_numpy(), reach)
