"""A cheap scorer gets two cut-offs, so that a judge is asked only where the scorer is not sure.

A text that scores below `low` is called clean, one above `high` harmful, and everything else goes
to the judge: also a text without a score. The cut-offs come from texts whose labels are known, and
with a stated confidence no more than a stated share of what is harmful is called clean.

Our choice of what is bounded: of all harmful texts, the share that the screen calls clean (missed
harm); of all clean texts, the share that it calls harmful (false alarms). Neither depends on how
many texts are harmful, which among labelled texts is another share than in traffic. Harm missed as
a share of *all* texts would be kept by calling everything clean wherever harm is rare.

Our choice also: one pair of cut-offs for all groups. A text seldom says whom it is about, and a
group with a bar of its own is treated otherwise than the rest.

What is promised holds for texts that are drawn as the labelled ones were, one by one: of a template
or author only one may count (`one_of_each`). No test of scores sees that harm itself has changed;
`has_drifted` sees a change of scores.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its stats are loaded when first used: that takes most of a second
from numpy.typing import ArrayLike, NDArray

from evenhand.core.errors import UserError
from evenhand.statistics._shared import FloatArray, IntArray, open_share
from evenhand.statistics.clusters import cluster_codes

Route = Literal["clean", "judge", "harmful"]
Kind = Literal["missed harm", "false alarms"]
_EXACT = 5_000  # our choice: of more scores the p-value is that of infinitely many
SMALL = "the groups with too few labels, together"
_Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A promise bounds a share in one group, or in all texts, or says that nothing can be said."""

    kind: Kind
    group: Hashable | None  # None: all texts
    at_most: float
    confidence: float
    labels: int  # harmful texts for missed harm, clean ones for false alarms
    needs: int  # as many labels are needed at least
    unscored: int  # of them have no score, and count as scored the wrong way

    @property
    def guaranteed(self) -> bool:
        return self.labels >= self.needs

    def __str__(self) -> str:
        who = "all texts" if self.group is None else str(self.group)
        if not self.guaranteed:
            needs = f"needs {self.needs} labels and has {self.labels}"
            return f"{self.kind}, {who}: not guaranteed: {needs}"
        return (
            f"{self.kind}, {who}: at most {self.at_most:g} with confidence {self.confidence:g} "
            f"({self.labels} labels)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A screen calls a text clean below `low`, harmful above `high`, and asks the judge between.

    `low` is −∞ where nothing may be called clean, `high` is ∞ where nothing may be called harmful.
    """

    low: float
    high: float
    promises: tuple[Promise, ...]

    def routes(self, scores: ArrayLike) -> list[Route]:
        """Every text goes one of three ways; one whose score is missing (NaN) goes to the judge."""
        values = _scores(scores)
        clean, harmful = values < self.low, values > self.high  # of NaN neither is true
        return ["clean" if c else "harmful" if h else "judge"
                for c, h in zip(clean.tolist(), harmful.tolist(), strict=True)]  # fmt: skip

    def judged(self, scores: ArrayLike) -> float:
        """The judge is asked about this share of the texts. NaN without a text."""
        routes = self.routes(scores)
        return routes.count("judge") / len(routes) if routes else math.nan


def calibrate(
    scores: ArrayLike,
    harmful: ArrayLike,
    groups: Sequence[Hashable] | None = None,
    *,
    missed: float = 0.05,
    false_alarms: float | None = None,
    confidence: float = 0.95,
) -> Screen:
    """Choose the boldest thresholds of a screen that labeled texts allow.

    `low` is the k-th smallest score of the n harmful texts, k the largest with P(Binomial(n,
    missed) ≤ k − 1) ≤ 1 − confidence: were the share of harm below `low` larger than `missed`, so
    few of n would seldom be there. It is what fixed-sequence testing from the most careful
    threshold upwards finds, each threshold by the exact binomial p-value, and holds at any n.
    `high` mirrors it, with the clean texts and `false_alarms`. Source: Angelopoulos, Bates, Candès,
    Jordan & Lei 2025 (Learn then Test); Wilks 1941.

    With groups, a threshold is the most careful of those of all texts and of every group. The
    guarantees then hold *together* with this confidence, without a correction for their number: one
    of them fails only if the threshold is too bold for the group that needs the most careful one,
    and that group's own is too bold with at most 1 − confidence. Missed harm and false alarms are
    two claims, each with this confidence.

    A group with fewer labels than k = 1 needs has no guarantee, and its `Promise` says so. All such
    groups together count as one group more, so that they still bound the threshold: by their lowest
    harmful score (or highest clean one) where even together they are too few. A labeled text
    without a score counts as scored the wrong way: a scorer that failed then need not fail later.

    Args:
        scores: The score of each labeled text; NaN where the scorer failed.
        harmful: Whether each text is harmful.
        groups: The group that each text is about, None for no group; without it, no groups are
            formed.
        missed: The largest share of harmful texts below `low`.
        false_alarms: The largest share of clean texts above `high`; None to set `high` to ∞.
        confidence: The one-sided confidence of the guarantees.

    Raises:
        UserError: If a text has no label.
    """
    values, label = _scores(scores), np.asarray(harmful)
    if label.dtype != np.bool_ or label.shape != values.shape:
        raise UserError("every score needs a label, true where the text is harmful")
    who = np.zeros(values.size, np.int64) if groups is None else _groups(groups, values.size)
    names = list(dict.fromkeys(group for group in groups or () if group is not None))
    low, about_low = _cut(values, label, who, names, ("missed harm", missed, confidence))
    high: float = math.inf
    about_high: tuple[Promise, ...] = ()
    if false_alarms is not None:
        bound: _Bound = ("false alarms", false_alarms, confidence)
        mirrored, about_high = _cut(-values, ~label, who, names, bound)
        high = max(-mirrored, low)  # a score that may be called either is called clean
    return Screen(low=low, high=high, promises=(*about_low, *about_high))


def seldom_exceeded(scores: ArrayLike, at_most: float, confidence: float = 0.95) -> float:
    """Compute the lowest score that at most a share of such texts exceed.

    The k-th largest of n scores, k as in `calibrate`; ∞ with fewer texts than `labels_needed`. A
    text without a score (NaN) counts as one that exceeds all others. Source: Wilks 1941.

    Args:
        scores: The score of each text.
        at_most: The largest share of texts above the result.
        confidence: The one-sided confidence of that share.
    """
    values = -np.sort(-np.nan_to_num(_scores(scores), nan=math.inf))
    if values.size < labels_needed(at_most, confidence):
        return math.inf
    return float(values[_place(values.size, at_most, 1 - confidence)])


def labels_needed(at_most: float, confidence: float = 0.95) -> int:
    """A promise needs at least so many labels: the least n with (1 − at_most)ⁿ ≤ 1 − confidence.

    59 harmful texts for 5%, 299 for 1%, with a confidence of 95%. Source: Wilks 1941.
    """
    open_share(at_most, "a bound on a share")
    least = math.log1p(-open_share(confidence, "confidence")) / math.log1p(-at_most)
    return math.ceil(least - 1e-9)


def one_of_each(clusters: Iterable[Hashable], seed: int = 0) -> IntArray:
    """Sample one text of each cluster, and return its position. The others are not independent
    labels, as texts of a template or an author are alike."""
    codes = cluster_codes(clusters)
    order = np.random.default_rng(seed).permutation(codes.size)
    _, first = np.unique(codes[order], return_index=True)
    return np.sort(order[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A look says whether scores are still distributed as they were at calibration."""

    p_value: float  # corrected for the number of windows
    level: float  # what the p-value of this look is compared with
    reference: int
    new: int  # scores since the last look
    pooled: int  # scores since the calibration
    windows: int

    @property
    def drifted(self) -> bool:
        return self.p_value <= self.level

    def power(self, crossed: float) -> float:
        """Give the approximate chance that all scores since the calibration together show a change,
        if a share `crossed` of the texts moved from one side of a score to the other.

        The test shows a distance of √(ln(2/level)/2 · (1/n + 1/m)); a distance that was seen is
        taken as normal with the standard error ½·√(1/n + 1/m), the largest it can have.
        """
        if not self.reference or not self.pooled:
            return 0.0
        spread = math.sqrt(1 / self.reference + 1 / self.pooled)
        needed = math.sqrt(math.log(2 * self.windows / self.level) / 2) * spread
        return float(scipy.special.ndtr((crossed - needed) / (spread / 2)))


def has_drifted(
    reference: ArrayLike, looks: Sequence[ArrayLike], false_alarm: float = 0.05
) -> Drift:
    """Compare new scores with earlier ones by two-sample Kolmogorov-Smirnov tests, at a level that
    shrinks with each look.

    At look j the scores of the last 1, 2, 4, 8, … looks are pooled, and those of all looks since
    the calibration: a change in small batches is seen as in one. p is the smallest p-value times
    the number of these windows. The level of look j = 1, 2, … is false_alarm / (j·(j + 1)); these
    add up to `false_alarm`, so that without any drift the chance that *any* look of all time raises
    an alarm is at most that. Source: Smirnov 1939; windows and levels: our choice, by Bonferroni.
    Of 1,000 scores on each side, a tenth of the texts passing the median is seen 19 times in 20 at
    the first look (150 draws).

    Args:
        reference: Scores of texts drawn as those to come are, labelled or not: a labelled set into
            which harm was gathered differs from traffic from the start.
        looks: The scores of every look since the calibration, the newest last. A missing score
            (NaN) is a value of its own above all others, so that a scorer that begins to fail is
            seen.
        false_alarm: The chance of a false alarm at any look of all time.

    Returns:
        What the newest look shows. Without a text on one side nothing is seen: p = 1.
    """
    if not looks:
        raise UserError("without a look nothing can be said of a drift")
    then, *batches = (np.nan_to_num(_scores(scores), nan=np.inf) for scores in (reference, *looks))
    sizes = sorted({2**k for k in range(len(batches).bit_length())} | {len(batches)})
    windows = [size for size in sizes if size <= len(batches)]
    tested = [_p_same(then, np.concatenate(batches[-size:])) for size in windows]
    level = open_share(false_alarm, "a rate of false alarms") / (len(looks) * (len(looks) + 1))
    return Drift(p_value=min(1.0, len(windows) * min(tested)), level=level, reference=then.size,
                 new=batches[-1].size, pooled=sum(batch.size for batch in batches),
                 windows=len(windows))  # fmt: skip


def _p_same(then: FloatArray, now: FloatArray) -> float:
    if not then.size or not now.size:
        return 1.0
    exact = max(then.size, now.size) <= _EXACT
    test = scipy.stats.ks_2samp(then, now, method="exact" if exact else "asymp")
    return float(test.pvalue)


_Bound = tuple[Kind, float, float]


def _cut(
    scores: FloatArray, wrong: _Bools, who: IntArray, names: list[Hashable], bound: _Bound
) -> tuple[float, tuple[Promise, ...]]:
    """The most careful cut-off over all texts and groups, below which few of the `wrong` lie."""
    kind, share, confidence = bound
    needs, small = labels_needed(share, confidence), np.zeros(scores.size, bool)
    cut, promises = math.inf, list[Promise]()
    for number, name in enumerate([None, *names, SMALL]):
        mine = small if name is SMALL else wrong & ((who == number) | (name is None))
        here = np.sort(np.nan_to_num(scores[mine], nan=-math.inf))
        if not here.size and name is SMALL:
            continue
        promise = Promise(kind=kind, group=name, at_most=share, confidence=confidence,
                          labels=here.size, needs=needs,
                          unscored=int(np.isneginf(here).sum()))  # fmt: skip
        promises.append(promise)
        if not promise.guaranteed and number and name is not SMALL:
            small |= mine
        elif here.size:
            cut = min(cut, float(here[_place(here.size, share, 1 - confidence)]))
    return (cut if promises[0].guaranteed else -math.inf), tuple(promises)


def _place(n: int, share: float, error: float) -> int:
    """k − 1 for the largest k with P(Binomial(n, share) ≤ k − 1) ≤ error, and 0 where none is."""
    below = scipy.special.bdtr(np.arange(n), n, share)
    return max(int(np.searchsorted(below, error, side="right")) - 1, 0)


def _scores(scores: ArrayLike) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or np.isinf(values).any():
        raise UserError("scores are a flat list of finite numbers, NaN where one is missing")
    return values


def _groups(groups: Sequence[Hashable], n: int) -> IntArray:
    """1, 2, 3 … by first appearance, 0 for nobody."""
    if len(groups) != n:
        raise UserError(f"{n} scores but {len(groups)} groups")
    code_of: dict[Hashable, int] = {None: 0}
    return np.array([code_of.setdefault(group, len(code_of)) for group in groups], dtype=np.int64)
