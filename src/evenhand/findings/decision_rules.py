"""The rules of evidence are each written once for every report, comparison, frontier and plan."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.core.conclusions import ChangeResult, GuardrailResult
from evenhand.findings.display import Remark
from evenhand.findings.estimates import NO_SPREAD, Change, Coverage, Estimate, GuardrailTest
from evenhand.findings.measures import Measure
from evenhand.statistics.clusters import Interval
from evenhand.statistics.multiplicity import benjamini_hochberg, holm
from evenhand.statistics.planning import detectable_change
from evenhand.statistics.proportions import zero_event_upper
from evenhand.statistics.sign_flips import least_p, sign_flip_without_spread

ALPHA = 0.05  # the significance level of every decision
MISSING_MARGIN = 0.01  # our choice: a larger share of unscored answers is a gap


def p_value(difference: float, se: float, clusters: int, of_t: float | None) -> float:
    """Return the p-value of a difference from 0: that of t, or that of sign flips where nothing
    varies.

    Args:
        difference: The estimate, counted from the value to exclude.
        se: Its standard error over clusters.
        clusters: The number of clusters.
        of_t: The two-sided p-value of the t test; None where it has none.
    """
    if se == 0 or of_t is None:
        return sign_flip_without_spread(difference, clusters)
    return of_t


def with_p(estimate: Estimate, measure: Measure, interval: Interval) -> Estimate:
    """Add the p-value against "no bias" to an estimate, where the metric has such a value.

    Args:
        estimate: The estimate to complete.
        measure: The metric, which names the value for "no bias".
        interval: The interval that the estimate was made from.
    """
    if measure.null is None or estimate.value is None:
        return estimate
    shifted = interval.rescaled(1.0, -measure.null)
    p = p_value(shifted.estimate, shifted.se, shifted.clusters, shifted.p_two_sided)
    return replace(estimate, p=p)


def change_of(measure: Measure, interval: Interval, before: float, after: float) -> Change:
    """Return the change that an interval estimates, before it is tested.

    Args:
        measure: The metric that changed.
        interval: The interval of the difference.
        before: The value of the first run.
        after: The value of the second run.
    """
    return Change(
        name=measure.name,
        before=float(before),
        after=float(after),
        difference=interval.estimate,
        se=interval.se,
        n=interval.n,
        clusters=interval.clusters,
        undefined=NO_SPREAD if interval.no_spread else None,
    )


def adjusted(family: Sequence[Change]) -> list[Change]:
    """Adjust a family of changes by Holm: p-values, and intervals at the level at which each was
    tested. A change without a p-value keeps its place as 1."""
    return [
        _with_interval(replace(change, p_holm=p))
        for change, p in zip(family, holm(_p_values(family)), strict=True)
    ]


def exploratory(family: Sequence[Change]) -> list[Change]:
    """Adjust changes that nobody declared to judge by, by Benjamini-Hochberg. One without a p-value
    counts in the family as 1 and stays without."""
    after = benjamini_hochberg(_p_values(family))
    return [
        _with_interval(replace(change, p_bh=None if change.p is None else p))
        for change, p in zip(family, after, strict=True)
    ]


def _p_values(family: Sequence[Change]) -> list[float]:
    return [1.0 if change.p is None else change.p for change in family]


def _with_interval(change: Change) -> Change:
    """Add the interval that agrees with the adjusted p-value: p_adjusted ≤ 0.05 exactly where
    p ≤ 0.05 · p / p_adjusted, which is the level of the interval."""
    if change.test is None or change.p is None or change.p_adjusted is None:
        return change
    level = ALPHA * change.p / change.p_adjusted
    if level == ALPHA:
        return replace(change, low_adjusted=change.low, high_adjusted=change.high)
    low, high = change.test.interval(level)
    return replace(change, low_adjusted=low, high_adjusted=high)


def unadjusted(change: Change) -> Change:
    """Give the change as if it were the only one that was looked at."""
    return replace(change, p_holm=None, p_bh=None, low_adjusted=None, high_adjusted=None)


def adjusted_estimates(family: Sequence[Estimate]) -> list[Estimate]:
    """Adjust the p-values of one measure's estimates in several groups by Holm over all that were
    looked at."""
    raw = [1.0 if estimate.p is None else estimate.p for estimate in family]
    return [replace(estimate, p_holm=p) for estimate, p in zip(family, holm(raw), strict=True)]


def direction(change: Change, measure: Measure) -> ChangeResult:
    """Say whether a change is significantly for the better or for the worse: p ≤ 0.05, adjusted
    where the change belongs to a family. A missing answer counts for neither."""
    p = change.p_adjusted
    if measure.better == "none" or p is None or p > ALPHA or not change.effect:
        return "inconclusive"
    return "improved" if _gain(change, measure) > 0 else "regressed"


def kept(change: Change, measure: Measure) -> GuardrailResult:
    """Say whether a number stayed within its margin: non-inferiority, one-sided at 2.5%.

    Kept: the limit of the loss lies below the margin. Crossed: significantly worse, adjusted where
    the change belongs to a family, and not kept. Open: neither.
    """
    assert measure.margin is not None
    loss = largest_loss(change, measure)
    if loss is not None and loss < measure.margin:
        return "non_inferior"
    return "violated" if direction(change, measure) == "regressed" else "inconclusive"


def turned(change: Change, measure: Measure, matters: float) -> bool:
    """Check whether a number now is on the other side of its unbiased value. A distance that stays
    the same is then still a change.

    Args:
        change: The change with both values.
        measure: The metric, which names the unbiased value.
        matters: The smallest change that counts, in the unit of the metric.
    """
    if measure.center is None or change.before is None or change.after is None:
        return False
    sides = (change.before - measure.center) * (change.after - measure.center)
    return sides < 0 and abs(change.after - change.before) >= matters


def largest_loss(change: Change, measure: Measure) -> float | None:
    """Return the one-sided 97.5% limit of how much a number got worse; None without one."""
    if change.limits is None or (change.test is None and measure.center is not None):
        return None  # the distance from an unbiased value needs a test of its own
    low, high = change.limits
    return -low if measure.better == "higher" else high


def largest_gain(change: Change, measure: Measure, level: float = ALPHA / 2) -> float | None:
    """Return the one-sided limit of how much a number improved.

    Args:
        change: The tested change.
        measure: The metric, which says which direction is better.
        level: The one-sided error of the limit.

    Returns:
        The limit, positive for a gain; None where the change has no limits.
    """
    limits = change.limits
    if change.test is not None and level != ALPHA / 2:
        limits = change.test.limits(level)
    if limits is None or (change.test is None and measure.center is not None):
        return None
    return limits[1] if measure.better == "higher" else -limits[0]


def _gain(change: Change, measure: Measure) -> float:
    """By how much a number came out better: nearer to "no bias" where it has such a value."""
    assert change.effect is not None
    return change.effect if measure.better == "higher" else -change.effect


def allowed_unseen(change: Change, measure: Measure, alpha: float = ALPHA / 2) -> float:
    """Compute how large a change that no cluster shows may still be: each of the clusters that were
    not drawn may have changed by all that the metric allows.

    Args:
        change: The change, which names the number of clusters.
        measure: The metric with its range.
        alpha: The one-sided error.

    Returns:
        The change in the unit of the metric; infinite where the metric has no range.
    """
    if not measure.bounded:
        return math.inf
    least, most = measure.range
    return (most - least) * zero_event_upper(change.clusters, 1 - alpha)


def guardrail(change: Change, measure: Measure) -> GuardrailTest:
    """Return the guardrail of a measure with a margin."""
    if measure.absent and change.undefined == measure.absent:
        why = Remark("guardrail.not_compared", reason=measure.absent)
        return GuardrailTest(name=measure.name, state="inconclusive", says=why)
    state = kept(change, measure)
    if state == "violated":
        return GuardrailTest(name=measure.name, state=state, says=got_worse(change, measure))
    loss = loss_remark(change, measure)
    values = {"measure": measure.label, "margin": measure.margin, "change": loss}
    return GuardrailTest(
        name=measure.name, state=state, says=Remark(f"guardrail.{state}", **values)
    )


def got_worse(change: Change, measure: Measure) -> Remark:
    """Return that a measure got worse, with its change."""
    return Remark(
        "guardrail.worse",
        measure=measure.label,
        fell=measure.better == "higher",
        change=change_remark(change, measure),
    )


def loss_remark(change: Change, measure: Measure) -> Remark:
    """Return the change with the largest loss that is compatible with it, or why there is none."""
    loss = largest_loss(change, measure)
    if change.effect is None or loss is None:
        return change_remark(change, measure)
    return Remark(
        "change.loss",
        effect=change.effect,
        loss=loss,
        unit=measure.unit,
        if_known=_if_known(change, measure),
    )


Sides = tuple[Coverage, Coverage]  # of the run before and of the run after, over shared items


def missing_line(parts: Mapping[str, Sides]) -> GuardrailTest:
    """Say whether more answers are missing than before, of that part of the items (all of them, a
    condition, a measure) where it is worst: what is lost in one is not made good by another. It is
    a count of these very runs: kept where hardly any is missing, else open."""
    nonempty = {of: sides for of, sides in parts.items() if all(side.n for side in sides)}
    ranked = [_missing_in(of, *sides) for of, sides in nonempty.items()]
    nothing = GuardrailTest(
        name="missing", state="inconclusive", says=Remark("guardrail.nothing_shared")
    )
    return max(ranked, key=lambda pair: pair[0], default=((0, 0.0, 0.0), nothing))[1]


def _missing_in(
    of: str, before: Coverage, after: Coverage
) -> tuple[tuple[int, float, float], GuardrailTest]:
    """The line of one part of the items, and how bad it is."""
    old, new = ((side.n - side.scored) / side.n for side in (before, after))
    rise = new - old
    state: GuardrailResult = "non_inferior" if new <= MISSING_MARGIN else "inconclusive"
    remark = Remark(
        "guardrail.missing",
        of=of,
        before=before.n - before.scored,
        n_before=before.n,
        after=after.n - after.scored,
        n=after.n,
    )
    line = GuardrailTest(name="missing", state=state, says=remark)
    return (int(state == "inconclusive"), rise, new), line


def change_remark(change: Change, measure: Measure) -> Remark:
    """Return the change that is tested with its 95% CI, or why there is none."""
    if change.difference is None or change.effect is None:
        return Remark("change.undefined", reason=change.undefined)
    low, high = change.interval or (None, None)
    return Remark(
        "change",
        effect=change.effect,
        low=low,
        high=high,
        undefined=change.undefined,
        clusters=change.clusters,
        unit=measure.unit,
        if_known=_if_known(change, measure),
    )


def _if_known(change: Change, measure: Measure) -> Remark | None:
    """Return what the change could be if the missing answers were known."""
    bounds = change.bounds
    if bounds is None:
        return None
    return Remark(
        "change.if_known",
        missing=bounds.missing,
        low=bounds.low,
        high=bounds.high,
        unit=measure.unit,
    )


def too_few(change: Change, family: int) -> bool:
    """Say whether a change over so few clusters cannot be shown at all after Holm over `family`
    changes, however large it is: not even if every cluster changed the same way."""
    return change.difference is not None and least_p(change.clusters) > ALPHA / family


def smallest_shown(
    change: Change, measure: Measure, *, family: int, together: int = 1
) -> float | None:
    """Compute the minimum detectable effect of a comparison at 80% power. Where nothing varies, it
    is the largest change that this many clusters may hide.

    Args:
        change: The change that was estimated.
        measure: The metric that changed.
        family: How many changes are tested at once, for Holm's correction.
        together: How many of them must all be significant.

    Returns:
        The effect in the unit of the metric. None with too few clusters, for a number without a
        range where nothing varies, and where missing answers allow any value.
    """
    if change.difference is None or too_few(change, family):
        return None
    pull = 0.0  # missing answers count against a claim
    if change.bounds is not None:
        if change.bounds.low is None or change.bounds.high is None:
            return None
        pull = (change.bounds.high - change.bounds.low) / 2
    if not change.se:
        hidden = allowed_unseen(change, measure)
        return hidden + pull if math.isfinite(hidden) else None
    free = change.clusters - 1
    size = detectable_change(change.se, free, family=family, together=together)
    if change.test is None or measure.null is None or change.before is None:
        return size + pull
    # That a score moved away from its unbiased value also asks for the sign of both runs together,
    # which is plain where the run before was far from it.
    spread = change.test.spread_of_both
    distance = max(0.0, abs(change.before - measure.null) - spread)
    both = detectable_change(spread, free, family=family, together=together) - 2 * distance
    return max(size, both) + pull


def benefit_excluded(
    change: Change, measure: Measure, size: float, alpha: float = ALPHA / 2
) -> bool:
    """Check whether an improvement of a given size is ruled out, however the missing answers came
    out.

    Args:
        change: The tested change.
        measure: The metric, which says which direction is better.
        size: The improvement to rule out, in the unit of the metric.
        alpha: The one-sided error.
    """
    gain = largest_gain(change, measure, alpha)
    return gain is not None and gain < size


def in_unit(matters: float, measure: Measure) -> float:
    """Give what an instrument declares to matter, as a share, in the unit of one of its
    measures."""
    return matters * (100 if measure.unit == "percent" else 1)
