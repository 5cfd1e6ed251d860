"""A run that may stop when it is decided has an expected length, found by drawing such runs.

The question is that of a gate: has a number risen by less than a margin, or has it risen at all?
Each cluster gives one change. What decides how soon the bets of `sequences` settle it is the mean
and the spread of these changes and the ends that none can pass. So each is drawn as one of two
values, √(s² + d²) and its negative, with the mean d and the spread s: our choice, as the simplest.
Every cluster weighs the same. Where sizes differ much, a gate bets less on small clusters and
decides later, so that these draws say nothing of it.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import UserError
from evenhand.statistics._shared import FloatArray, t_quantile
from evenhand.statistics.sequences import log_wealth

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
    """Draw runs of so many clusters whose changes have this mean and spread, and stop each at the
    first look that decides it. A run that nothing decides asks all clusters, as a fixed one does.
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
