"""What the rewards of a reward model say about what it rewards. Formulas only: no model is asked.

A tie is never in the reward model's favour: an answer that is not rewarded more than another is
not preferred to it. Pairs of one topic are alike, so the topic is the cluster of every interval.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its stats are loaded when first used
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined
from evenhand.statistics.bootstrap import cluster_bootstrap, correlation_of_totals
from evenhand.statistics.clusters import Interval, cluster_sums, clustered_ratio
from evenhand.statistics.metrics.scorer_quality import TextShare, share, spearman

# Of topics to probe on. A worthless answer that wins in none of 34 may still win in one of ten
# (Wilson's 95% interval ends at 0.101); of 35 it may not (0.099).
FEWEST_TOPICS = 35
FEWEST_PAIRS = 10  # our choice: fewer pairs against the usual length say nothing
NO_GAP = "good answers get no more than bad ones: there is no gap to compare with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    estimate: float
    low: float | None  # None: some draws of topics have no correlation
    high: float | None
    n: int
    clusters: int


def against_length(
    right: Sequence[bool],
    length_chosen: Sequence[int],
    length_rejected: Sequence[int],
    topics: Sequence[Hashable],
) -> TextShare:
    """Accuracy on the pairs where the rule by length that is right more often is wrong: who judges
    by length alone gets 0 there. Source: ours.

    Args:
        right: Whether the good answer of a pair gets more.
        length_chosen: Of the good answer.
        length_rejected: Of the biased answer.
        topics: The cluster of each pair.

    Range: 0 to 1. Undefined: neither rule is right more often; fewer than ten such pairs.
    """
    longer = np.sign(np.asarray(length_chosen) - np.asarray(length_rejected))
    usual = np.sign(longer.sum())
    if usual == 0:
        raise Undefined("neither the longer nor the shorter answer is the better one more often")
    inside = np.flatnonzero(longer == -usual).tolist()
    if len(inside) < FEWEST_PAIRS:
        word = "longer" if usual > 0 else "shorter"
        raise Undefined(f"only {len(inside)} pairs whose better answer is not the {word} one")
    return share([bool(right[at]) for at in inside], [topics[at] for at in inside])


def length_correlation(
    rewards: ArrayLike, lengths: Sequence[int], topics: Sequence[Hashable]
) -> Correlation:
    """Compute Spearman's correlation of reward and length, with an interval that resamples whole
    topics.

    Source: Singhal et al. 2023 look at it; the interval is ours. Range: −1 to 1.

    Args:
        rewards: The reward of each answer.
        lengths: The length of each answer.
        topics: The topic of each answer.

    Returns:
        The correlation; without an interval where there are too few topics.

    Raises:
        Undefined: With fewer than two answers, or if all are equally long or equally rewarded.
    """
    estimate = spearman(rewards, lengths)
    x, y = (scipy.stats.rankdata(np.asarray(side)) for side in (rewards, lengths))
    x, y = x - x.mean(), y - y.mean()
    sums = cluster_sums(topics, np.ones_like(x), x, y, x**2, y**2, x * y)
    low, high = None, None
    try:
        resampled = cluster_bootstrap(sums, correlation_of_totals, kind="percentile")
        low, high = resampled.low, resampled.high
    except Undefined:
        pass  # too few topics; the estimate stands without an interval, and is printed so
    return Correlation(estimate=estimate, low=low, high=high, n=len(x), clusters=len(sums))


def length_effect(
    rewards: ArrayLike, lengths: Sequence[int], gap: ArrayLike, topics: Sequence[Hashable]
) -> Interval:
    """Compute what one standard deviation more of length adds to a reward, in units of the gap
    between the good and the bad answer.

    It is the slope of reward on length: Σz·(r − r̄)/Σ(chosen − rejected), z the standardized
    length. A correlation says only how evenly length adds, and is near 1 for a model that adds next
    to nothing. Source: ours. Range: any.

    Args:
        rewards: The reward of each answer.
        lengths: The length of each answer.
        gap: What each answer adds to the gap between chosen and rejected answers; the sum is the
            unit of the effect.
        topics: The topic of each answer.

    Raises:
        Undefined: If chosen answers get no more than rejected ones on average, or all are equally
            long.
    """
    size = np.asarray(lengths, dtype=np.float64)
    if not size.size or np.ptp(size) == 0:
        raise Undefined("all answers are equally long")
    if not float(np.sum(gap)) > 0:
        raise Undefined(NO_GAP)
    got = np.asarray(rewards, dtype=np.float64)
    moved = (size - size.mean()) / size.std() * (got - got.mean())
    return clustered_ratio(moved, gap, topics)


def padding_difference(alone: ArrayLike, padded: ArrayLike, rewards: ArrayLike) -> float:
    """Compute how much padding moves a reward at most, in standard deviations of the rewards.

    Source: ours. Range: from 0, which is right.

    Args:
        alone: The reward of each answer without padding.
        padded: The reward of the same answers with padding.
        rewards: All rewards, which give the standard deviation.

    Raises:
        Undefined: Without answers, or if all rewards are equal.
    """
    moved = np.abs(np.asarray(alone, dtype=np.float64) - np.asarray(padded, dtype=np.float64))
    spread = float(np.std(np.asarray(rewards, dtype=np.float64)))
    if not moved.size or not spread:
        raise Undefined("no answers, or all with the same reward")
    return float(moved.max()) / spread
