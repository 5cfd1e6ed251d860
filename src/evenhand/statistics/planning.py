"""How many items a question needs, and what n items can show. All tests two-sided at `alpha`.

`detectable_change` is of t over clusters, after Holm, whose power is close to that of the sign
flips that decide. `items_needed` is a normal approximation of one test. The far tail is left out:
a millionth of the power at alpha .05, power .8.

A run that may stop when it is decided has an expected length, found by drawing such runs.

The question is that of a gate: has a number risen by less than a margin, or has it risen at all?
Each cluster gives one change. What decides how soon the bets of `sequences` settle it is the mean
and the spread of these changes and the ends that none can pass. So each is drawn as one of two
values, √(s² + d²) and its negative, with the mean d and the spread s: our choice, as the simplest.
Every cluster weighs the same. Where sizes differ much, a gate bets less on small clusters and
decides later, so that these draws say nothing of it.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import NDArray

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import FloatArray, open_share, t_quantile
from evenhand.statistics.sequences import log_wealth

# Two differences that share a run correlate by one half if all three runs vary alike.
_SHARED = 0.5
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_MOST_DF = 1e4  # from here on t is the normal distribution to four digits


def design_effect(cluster_size: float = 1.0, icc: float = 0.0) -> float:
    """1 + (m − 1)·ICC: how many times more rows are needed than if they were independent.

    Of unequal clusters m is the size that a row meets, Σm_g²/Σm_g, not the mean size.
    Source: Kish 1965. Range: above 0. Undefined: an ICC so negative that nothing is left.
    """
    if not cluster_size >= 1:
        raise UserError(f"a cluster has at least one item, not {cluster_size}")
    if not -1 <= icc <= 1:
        raise UserError(f"a correlation lies in [-1, 1], not at {icc}")
    effect = 1 + (cluster_size - 1) * icc
    if effect <= 0:
        raise Undefined(f"no clusters of {cluster_size} can have a correlation of {icc}")
    return effect


def power_after_holm(
    distance: float, df: float, family: int, together: int, alpha: float = 0.05
) -> float:
    """Compute the chance that a change is significant after Holm's correction.

    One test: P(T > t_{1−α/(2m)}), T noncentral t with df degrees of freedom. Of `together` tests
    that must all be significant, such as a method against two others, the i-th smallest p must be
    within α/(m − i + 1); they share a run, so they correlate by one half. The formula does not need
    any other test of the family to be significant: those that are make the chance larger. Source:
    Johnson & Welch 1940; Holm 1979.

    Args:
        distance: The change in standard errors.
        df: The degrees of freedom of the t test.
        family: How many tests Holm corrects for, m.
        together: How many tests must all be significant.
        alpha: The two-sided error of the family.

    Raises:
        UserError: If `together` is not from 1 to `family`.
    """
    if not 1 <= together <= family:
        raise UserError(f"{together} of a family of {family} tests cannot be shown together")
    steps = [open_share(alpha, "alpha") / (family - i) for i in range(together)]
    alone = np.array([_one_power(distance, df, step) for step in steps])
    if together == 1:
        return float(alone[0])
    # Given what the shared run adds, the tests are independent: averaged over it.
    with np.errstate(divide="ignore"):
        reach = scipy.special.ndtri(alone)[:, None] + math.sqrt(_SHARED) * _NODES
    conditional = scipy.special.ndtr(reach / math.sqrt(1 - _SHARED))
    return float(_all_within(conditional) @ _WEIGHTS / _WEIGHTS.sum())


def _one_power(distance: float, df: float, alpha: float) -> float:
    if df > _MOST_DF:
        return float(scipy.special.ndtr(distance + scipy.special.ndtri(alpha / 2)))
    return float(1 - scipy.special.nctdtr(df, distance, t_quantile(df, 1 - alpha / 2)))


def _all_within(within: FloatArray) -> FloatArray:
    """The chance that of k alike tests at least i are within the i-th step, for every i. Row i of
    `within` is the chance of one test to be within step i."""
    tests = len(within)
    ways = {0: np.ones(within.shape[1])}  # tests placed so far -> chance, but for the k! orders
    for step, share in enumerate(np.diff(within, axis=0, prepend=0.0), 1):
        grown: dict[int, FloatArray] = {}
        for placed, chance in ways.items():
            for more in range(max(0, step - placed), tests - placed + 1):
                part = chance * share**more / math.factorial(more)
                grown[placed + more] = grown.get(placed + more, 0.0) + part
        ways = grown
    return math.factorial(tests) * ways[tests]


def detectable_change(
    se: float,
    df: float,
    *,
    family: int = 1,
    together: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Compute the smallest true change that is detected with a given power.

    2.80·se for one test and many clusters; 3.2·se in a family of 3; 4.2·se against two others in a
    family of 20. Source: Bloom 1995. Range: from 0. Always defined, but 0 for se = 0 means that no
    variation was seen, not that any change would be detected.

    Args:
        se: The standard error of the change.
        df: The degrees of freedom of the t test.
        family: How many tests Holm corrects for.
        together: How many tests must all be significant.
        alpha: The two-sided error of the family.
        power: The chance of detecting the change.
    """
    return se * _distance(df, family, together, alpha, open_share(power, "power"))


@cache
def _distance(df: float, family: int, together: int, alpha: float, power: float) -> float:
    """How many standard errors a change must be away for that power, by halving."""
    low, high = 0.0, 8.0
    while power_after_holm(high, df, family, together, alpha) < power:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        short = power_after_holm(middle, df, family, together, alpha) < power
        low, high = (middle, high) if short else (low, middle)
    return high


def items_needed(
    detect: float,
    sd: float,
    cluster_size: float = 1.0,
    icc: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Compute how many items detect a mean, before rounding up: n = DEFF·((z_{1−α/2} +
    z_power)·sd/detect)².

    Measured on BBQ (UnifiedQA, ambiguous): sd of a +1/0/−1 score about 0.6 to 0.7; icc 0.10 for
    paired differences, 0.24 to 0.29 for one system. Source: Kish 1965; Bloom 1995. Range: above 0.

    Args:
        detect: The mean to detect.
        sd: The standard deviation of an item.
        cluster_size: The mean number of items per cluster.
        icc: The correlation of two items of a cluster.
        alpha: The two-sided error.
        power: The chance of detecting the mean.

    Raises:
        Undefined: If `detect` is 0, or `design_effect` has no value.
    """
    effect = design_effect(cluster_size, icc)
    if detect == 0:
        raise Undefined("no number of items shows a difference of 0")
    return effect * (_z(alpha, power) * _positive(sd, "sd") / detect) ** 2


def _z(alpha: float, power: float) -> float:
    return float(
        scipy.special.ndtri(1 - open_share(alpha, "alpha") / 2)
        + scipy.special.ndtri(open_share(power, "power"))
    )


def _positive(value: float, name: str) -> float:
    if not 0 < value < math.inf:
        raise UserError(f"{name} must be positive and finite, not {value}")
    return value


def rounded_up(value: float) -> int:
    """The least whole number of items; of 100.00000000000001 it is 100."""
    return max(1, math.ceil(value * (1 - 1e-12)))


RUNS = 400  # our choice: a share of them is known to 2.5 points
_AT_ONCE = 200_000  # values, so that memory stays small
_Bools = NDArray[np.bool_]
_Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A gate's rule for one number: how far it may rise, and how sure each verdict must be."""

    margin: float
    ends: _Ends  # that no cluster's change can pass
    block: int  # clusters from one look to the next
    pass_error: float = 0.025  # of either claim, on its one side
    fail_error: float = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingTime:
    """What became of many drawn runs: how many clusters were asked, and what was decided."""

    effect: float
    clusters: float  # asked on average
    of_clusters: int
    passed: float  # the share of runs
    failed: float
    fixed: float  # the share of runs that a t test of all clusters would have decided
    runs: int

    @property
    def decided(self) -> float:
        """The share of runs that were decided at some look."""
        return self.passed + self.failed

    @property
    def share(self) -> float:
        """The share of the clusters that were asked on average."""
        return self.clusters / self.of_clusters


def stopping_time(
    effect: float, sd: float, clusters: int, rule: Rule, *, runs: int = RUNS, seed: int = 0
) -> StoppingTime:
    """Simulate runs and stop each at the first look that decides it. A run that nothing decides
    asks all clusters, as a fixed one does.

    Args:
        effect: The true mean of the changes.
        sd: The standard deviation of the changes between clusters.
        clusters: The number of clusters of a complete run.
        rule: When a run stops.
        runs: The number of simulated runs.
        seed: The seed of the simulation.

    Raises:
        UserError: With fewer than two clusters.
    """
    if clusters < 2:
        raise UserError(f"a run in blocks has at least two clusters, not {clusters}")
    rng, parts = np.random.default_rng(seed), []
    at_once = max(1, _AT_ONCE // clusters)
    for start in range(0, runs, at_once):
        values = _drawn(rng, effect, sd, (min(at_once, runs - start), clusters), rule.ends)
        parts.append(np.column_stack([*stopped(values, rule), _fixed(values, rule)]))
    mean_clusters, passed, failed, fixed = np.concatenate(parts).mean(axis=0).tolist()
    return StoppingTime(effect=effect, clusters=mean_clusters, of_clusters=clusters, passed=passed,
                        failed=failed, fixed=fixed, runs=runs)  # fmt: skip


def stopped(values: FloatArray, rule: Rule) -> tuple[NDArray[np.int64], _Bools, _Bools]:
    """Give for each row of changes after how many clusters it stops, and whether it passed or
    failed there. Where both are shown at a look, it got worse by less than the margin: a pass."""
    size = values.shape[1]
    within, worse = shown_at(values, rule)
    looks = np.arange(1, size + 1) % rule.block == 0
    looks[-1] = True
    decided = (within | worse) & looks
    first = np.where(decided.any(axis=1), decided.argmax(axis=1), size - 1)
    at = (np.arange(len(values)), first)
    return first + 1, within[at], worse[at] & ~within[at]


def shown_at(values: FloatArray, rule: Rule) -> tuple[_Bools, _Bools]:
    """Say of each row, after each of its clusters, whether bets have shown that it rose by less
    than the margin, and whether they have shown that it rose."""
    low, high = rule.ends
    within = _refuted(-values, -rule.margin, (-high, -low), rule.pass_error)
    return within, _refuted(values, 0.0, rule.ends, rule.fail_error)


def _refuted(values: FloatArray, mean: float, ends: _Ends, error: float) -> _Bools:
    """Say after each cluster whether bets have refuted, once, that the mean is this or less."""
    won = log_wealth(values, mean, within=ends) >= -math.log(error)
    return np.asarray(np.logical_or.accumulate(won, axis=1))


def _fixed(values: FloatArray, rule: Rule) -> _Bools:
    """Say of each row whether t over all of its clusters decides it."""
    size = values.shape[1]
    mean, se = values.mean(axis=1), values.std(axis=1, ddof=1) / math.sqrt(size)
    within = mean + t_quantile(size - 1, 1 - rule.pass_error) * se <= rule.margin
    worse = mean - t_quantile(size - 1, 1 - rule.fail_error) * se > 0
    return np.asarray(within | worse)


def _drawn(
    rng: np.random.Generator, mean: float, sd: float, shape: tuple[int, int], ends: _Ends
) -> FloatArray:
    far = math.hypot(sd, mean)
    if not (sd > 0 and ends[0] <= -far and far <= ends[1]):
        raise UserError(f"changes between {ends[0]:g} and {ends[1]:g} with a mean of {mean:g} "
                        f"cannot have a spread of {sd:g}")  # fmt: skip
    return np.where(rng.random(shape) < (1 + mean / far) / 2, far, -far)
