"""A mean is estimated from few labels and many cheap predictions (prediction-powered inference).

A cheap scorer says something of every text, a judge or a person of a few. The mean of the scorer's
numbers alone is as wrong as the scorer; the mean of the labels alone is right and wide. Here the
scorer's mean is taken and what the labels show to be its error is added. That estimates the mean of
the labels whatever the scorer is worth, and the better the scorer, the narrower the interval. How
much of the scorer is used (λ) is chosen by the data; λ = 0 is the labels alone.

Texts to label may be drawn with unequal chances, more where the scorer is unsure, as long as every
text has a chance and the chances are kept.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics._shared import (
    FloatArray,
    IntArray,
    finite,
    open_share,
    same_length,
    t_quantile,
)
from evenhand.statistics.clusters import cluster_codes

# Our choice: this part of a budget is drawn evenly, so that no weight passes 4/3 · N/n. A quarter
# left few labels where a scorer is sure, and the interval was up to 2.2 times as wide.
_EVEN = 0.75
_LEAST = 20  # our choice: of fewer labels nobody can say how much the predictions are worth


@dataclass(frozen=True, slots=True, kw_only=True)
class PoweredMean:
    """A mean with its interval, and with the interval that the labels alone would have given."""

    estimate: float
    low: float
    high: float
    confidence: float
    se: float
    df: float
    share_used: float  # λ: how much of the predictions is used
    labels: int
    predictions: int
    labels_alone: tuple[float, float]

    @property
    def width_ratio(self) -> float:
        """The width relative to the interval of the labels alone: at most 1 if λ is not given."""
        low, high = self.labels_alone
        return (self.high - self.low) / (high - low) if high > low else 1.0


def powered_mean(
    predictions: ArrayLike,
    labels: ArrayLike,
    at: ArrayLike,
    *,
    chances: ArrayLike | None = None,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
    share_used: float | None = None,
) -> PoweredMean:
    """Estimate the mean of the labels that all texts would get, from predictions for all and labels
    for some: λ · mean prediction + mean of the labels less λ times their predictions.

    With w the weights, y labels, f predictions, each cluster g adds A_g − λ·B_g to the error: A_g =
    Σ w·(y − ȳ)/Σw and B_g = Σ w·(f − f̄_w)/Σw over its labeled texts, less Σ (f − f̄)/N over all of
    its texts. λ = Σ A·B/Σ B², the least squares of that, and 0 where it is negative; se² = k/(k −
    2) · Σ (A − λB)², and k/(k − 1) with λ = 0; t with k − 2 or k − 1 degrees of freedom. k is the
    number of labeled clusters that would say as much if all weighed the same, (Σw)²/Σw². λ = 0 also
    where the interval would else be wider, and below 20 labels.

    Our choice for labels that are 0 or 1: one error of either kind is added to them (label 1 at the
    least prediction, 0 at the largest), as "no error in 50" still allows some. Each has the largest
    weight of any label: an error that was not seen may be where the fewest labels are. Without
    them, an interval at 95% covered the truth in 87% of draws for a judge that is right 19 times in
    20; at the mean weight it covered 71% for a scorer that is sure of most texts. Where few errors
    are seen the interval is wider than need be. The estimate is without them. Nothing is added to
    other labels: where nearly all are alike, their interval is too short, as t is.

    Source: Angelopoulos, Duchi & Zrnic 2023 (PPI++); Zrnic & Candès 2024 (chances); Cochran 1977,
    chapter 12 (two-phase sampling); Agresti & Coull 1998 (added labels). Range: that of the labels,
    not cut off at its ends.

    Args:
        predictions: One number per text, for labeled ones too. A missing one (NaN) becomes the mean
            of the others, as any number will do.
        labels: The labels of the texts at the places `at`. A label that was requested and is
            missing must not be left out, so a missing one is refused here.
        at: The places of the labeled texts among all texts.
        chances: The chance with which each labeled text was sampled; every label weighs 1/chance.
            Without them all chances are equal.
        clusters: The cluster of each text. Without them each text is its own cluster.
        confidence: The two-sided confidence of the interval.
        share_used: The value of λ; None to choose the best one.

    Raises:
        Undefined: With fewer than two labeled clusters.
    """
    f, y, where = _filled(predictions), finite(labels, "labels"), _places(at)
    _check(f, y, where)
    codes = np.arange(f.size) if clusters is None else cluster_codes(clusters)
    same_length(f, codes.astype(np.float64), "predictions and clusters")
    if np.unique(codes[where]).size < 2:
        raise Undefined("one labelled cluster: nothing shows how much another would differ")
    errors = _errors(f, y, where, _weights(chances, y.size), codes)
    alone = errors.interval(0.0, confidence)
    share = max(0.0, errors.best_share) if share_used is None else share_used
    if not share or errors.k < _LEAST:
        return alone
    powered = replace(errors.interval(share, confidence), labels_alone=alone.labels_alone)
    return alone if share_used is None and powered.width_ratio > 1 else powered


@dataclass(frozen=True, slots=True)
class _Errors:
    """What each cluster adds to the error of the labels (a) and of the predictions (b)."""

    a: FloatArray
    b: FloatArray
    k: float
    y: FloatArray  # with the added labels at its end
    g: FloatArray
    w: FloatArray
    labels: int
    predictions: FloatArray

    @property
    def best_share(self) -> float:
        size = float(self.b @ self.b)
        return float(self.a @ self.b) / size if size > 0 else 0.0

    def interval(self, share: float, confidence: float) -> PoweredMean:
        df = self.k - (2 if share else 1)
        apart = self.a - share * self.b
        se = math.sqrt(self.k / df * float(apart @ apart))
        reach = t_quantile(df, (1 + open_share(confidence, "confidence")) / 2) * se
        rest, base = self.y - share * self.g, share * float(self.predictions.mean())
        middle = base + _mean(rest, self.w)
        ends = (middle - reach, middle + reach)
        return PoweredMean(
            estimate=base + _mean(rest[: self.labels], self.w[: self.labels]),
            low=ends[0],
            high=ends[1],
            confidence=confidence,
            se=se,
            df=df,
            share_used=share,
            labels=self.labels,
            predictions=self.predictions.size,
            labels_alone=ends,
        )


def _errors(
    f: FloatArray, y: FloatArray, where: IntArray, w: FloatArray, codes: IntArray
) -> _Errors:
    labels, mine, g, top = y.size, codes[where], f[where], int(codes.max()) + 1
    if np.isin(y, (0.0, 1.0)).all():
        y, g = np.append(y, [1.0, 0.0]), np.append(g, [f.min(), f.max()])
        heaviest = np.bincount(mine, w).max()  # a further cluster, as heavy as the heaviest
        w, mine = np.append(w, [heaviest] * 2), np.append(mine, [top, top + 1])

    def summed(values: FloatArray) -> FloatArray:
        parts = w * (values - _mean(values, w)) / w.sum()
        return np.asarray(np.bincount(mine, parts, top + 2), dtype=np.float64)

    b = summed(g) - np.bincount(codes, (f - f.mean()) / f.size, top + 2)
    by_cluster = np.bincount(mine, w)
    k = float(w.sum() ** 2 / (by_cluster @ by_cluster))
    return _Errors(summed(y), b, k, y, g, w, labels, f)


def chances_to_label(uncertainty: ArrayLike, budget: float) -> FloatArray:
    """A text is to be labeled with this chance, which is larger where the scorer is less sure.

    Three quarters of the budget are spread evenly and the rest by `uncertainty`, a number from 0 up
    such as √(p·(1 − p)) of a probability p; nothing passes 1, and what is left over is spread on.
    Draw every text by itself (`rng.random(N) < chances`), and keep the chances with the labels.
    Missing uncertainty (NaN) counts as the largest. Source: Zrnic & Candès 2024; the part: ours.
    """
    u = np.asarray(uncertainty, dtype=np.float64)
    if u.ndim != 1 or not u.size or (u < 0).any() or not 0 < budget <= u.size:
        raise UserError("a budget is spread over texts whose uncertainty is a number from 0 up")
    u = np.nan_to_num(u, nan=float(np.nanmax(u, initial=0.0)))
    u = u if u.any() else np.ones_like(u)
    shares = _EVEN / u.size + (1 - _EVEN) * (u / u.sum())
    chances: FloatArray = np.minimum(budget * shares, 1.0)
    for _ in range(50):  # each pass spreads on what the ones above 1 left over
        free = chances < 1
        over = budget - float(chances.sum())
        if over < 1e-9 * budget or not free.any():
            break
        chances[free] = np.minimum(chances[free] * (1 + over / float(chances[free].sum())), 1.0)
    return chances


def labels_for(
    reach: float,
    *,
    texts: int,
    correlation: float = 0.0,
    share: float = 0.5,
    confidence: float = 0.95,
) -> int | None:
    """Compute how many evenly sampled labels give a share an interval of about ± `reach`.

    It is the least n with t_n·√(S/((n + 1)(n + 2)) + r²p(1 − p)/N) ≤ reach, and never below the 20
    from which predictions are used. p is `share`, r the size of the correlation of predictions and
    labels; r = 0 is the labels alone, of which never fewer are needed than with predictions. S =
    n·p(1 − p)(1 − r²) + (1 − p + e)² + (p + e)² is the expected sum of squared errors: of the
    labels, and of the two that the estimate adds, 1 at the least prediction and 0 at the largest,
    with e = 2·r·√(p(1 − p)). Our choice: the ends of the predictions are two standard deviations
    from their mean.

    The width is not guaranteed. Seen with 20,000 texts, p from 0.01 to 0.5, r from 0.6 to 0.95,
    normal and exponential noise, whose ends are further: up to 12% wider than planned on average,
    and wider at all in up to 96 of 100 draws; narrower with a judge. Source: Cochran 1977, chapter
    12; Angelopoulos, Duchi & Zrnic 2023.

    Args:
        reach: Half the width of the interval.
        texts: The number of all texts, N.
        correlation: The correlation of predictions and labels; 0 for labels alone.
        share: The expected share.
        confidence: The two-sided confidence of the interval.

    Returns:
        The number of labels. None if labeling all texts would not be enough: the interval is for
        texts like these, and not for these alone.

    Raises:
        UserError: If an argument is outside its range.
    """
    if not (0 < reach < 1 and -1 <= correlation <= 1 and 0 <= share <= 1):
        raise UserError("labels are planned for a reach from 0 to 1, a correlation from -1 to 1 "
                        "and a share from 0 to 1")  # fmt: skip
    varies, level = share * (1 - share), (1 + open_share(confidence, "confidence")) / 2

    def enough(n: int, r: float) -> bool:
        far = 2 * r * math.sqrt(varies)
        errors = n * varies * (1 - r**2) + (1 - share + far) ** 2 + (share + far) ** 2
        se = math.sqrt(errors / ((n + 1) * (n + 2)) + r**2 * varies / texts)
        return t_quantile(n, level) * se <= reach

    def least(r: float) -> int:
        return _LEAST + bisect_left(range(_LEAST, texts), True, key=partial(enough, r=r))

    if texts < _LEAST or not enough(texts, 0.0):
        return None
    return min(least(0.0), least(abs(correlation)))


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(values @ weights / weights.sum())


def _filled(predictions: ArrayLike) -> FloatArray:
    f = np.asarray(predictions, dtype=np.float64)
    if f.ndim != 1 or not f.size or np.isinf(f).any():
        raise UserError("predictions are a flat list of numbers, NaN where one is missing")
    present = f[~np.isnan(f)]
    return np.nan_to_num(f, nan=float(present.mean()) if present.size else 0.0)


def _places(at: ArrayLike) -> IntArray:
    return np.asarray(at, dtype=np.int64).reshape(-1)


def _check(f: FloatArray, y: FloatArray, where: IntArray) -> None:
    if y.size != where.size or np.unique(where).size != where.size:
        raise UserError(f"{y.size} labels need as many places, each named once")
    if not y.size:
        raise Undefined("no labels")
    if where.min() < 0 or where.max() >= f.size:
        raise UserError(f"a label is of one of {f.size} texts, not of {where.max()}")


def _weights(chances: ArrayLike | None, n: int) -> FloatArray:
    if chances is None:
        return np.ones(n)
    probabilities = finite(chances, "chances")
    if probabilities.size != n or not ((probabilities > 0) & (probabilities <= 1)).all():
        raise UserError("every label has the chance with which it was drawn, above 0 and up to 1")
    return 1 / probabilities
