"""The interval of a function of several means, from the region that their own intervals make.

It needs no derivative, so it holds at a kink such as that of min(SS, 100 − SS) at 50, where
resampling misses the truth in two of five cases, and with few clusters.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import ROUNDING, FloatArray, open_share, t_quantile
from evenhand.statistics.clusters import NO_ROWS, Interval

_POINTS = 200_000  # our choice: 447 steps along each of two means, 21 along each of four


def of_means(
    rows: ArrayLike, value: Callable[[FloatArray], FloatArray], confidence: float = 0.95
) -> Interval:
    """f of the means of the columns, with the least and the largest f where every mean lies within
    its own t interval.

    x̄_k ± t_{G−1}·s_k/√G over the G rows, one per cluster; f is looked up on a grid over all of
    them. `value` maps one vector of means per row to one number each. `se` is half the width
    over t. Our choice: each interval at `confidence` and not all of them together; of ICAT the
    result then covers 95 to 99 % (`bench/truth.py`). Range: that of f. Undefined: fewer than two
    rows, or f has no value somewhere on the grid.
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2:
        raise UserError("one row per cluster and one column per mean are needed")
    clusters, width = table.shape
    if not clusters:
        raise Undefined(NO_ROWS)
    if clusters == 1:
        raise Undefined("one cluster: nothing shows how much another would differ")
    t = t_quantile(clusters - 1, (1 + open_share(confidence, "confidence")) / 2)
    means, reach = table.mean(axis=0), t * table.std(axis=0, ddof=1) / clusters**0.5
    steps = np.linspace(-1, 1, int(_POINTS ** (1 / width)) | 1)
    grid = np.stack(np.meshgrid(*[steps] * width), axis=-1).reshape(-1, width)
    values = value(np.vstack([means, means + grid * reach]))
    if not np.isfinite(values).all():
        raise Undefined("the function has no value somewhere in the region of its means")
    estimate, low, high = float(values[0]), float(values.min()), float(values.max())
    se = (high - low) / (2 * t)
    if se <= ROUNDING * abs(estimate):
        low, high, se = estimate, estimate, 0.0
    return Interval(estimate=estimate, low=low, high=high, confidence=confidence, se=se,
                    df=clusters - 1, p_two_sided=None, n=clusters, clusters=clusters)  # fmt: skip
