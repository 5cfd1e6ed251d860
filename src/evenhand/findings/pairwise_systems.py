"""Which of several systems are told apart, two by two, on the same items.

Φ says that systems differ at all, and one system far from the others is enough for that. Which of
them differ is asked of each two: a sign-flip test over clusters of items, with Bonferroni over all
pairs. The interval beside it is the same test turned around, so that the two always agree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenhand.findings.measures import Measure
from evenhand.findings.remarks import Remark
from evenhand.statistics.sign_flips import p_of_columns, p_two_sided

_ALPHA = 0.05
_GRID, _ROUNDS = 33, 4  # our choice: an end of an interval to a millionth of what it may be
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPair:
    """Two systems, by the mean of a measure over their runs."""

    first: str
    second: str
    difference: float  # the first minus the second, each from "no bias" where there is such a value
    low: float | None  # ends that hold for all pairs together; None: there is no end
    high: float | None
    p_adjusted: float  # after Bonferroni; of being better, not only of being different
    better: str | None  # the one that is shown to be better; None where they are not told apart


def told_apart(
    measure: Measure, values: _Floats, clusters: Sequence[object], systems: Sequence[str]
) -> tuple[SystemPair, ...]:
    """Compare each two systems.

    Better is what is lower or higher, as the measure says; of a measure with a value for "no bias"
    it is what is nearer to that value. |a| − |b|, of distances a and b with |a| the larger, is the
    smaller one of a − b and a + b with the sign of a, and both have to be shown to lie above 0: the
    larger of the two p-values counts, and the lower of the two ends.

    Args:
        measure: What the values are of.
        values: One row per item, one column per run; none is missing.
        clusters: The cluster of each item.
        systems: The system of each run.

    Returns:
        One entry for each two systems, in their order.
    """
    names = list(dict.fromkeys(systems))
    _, cluster_index = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sizes = np.bincount(cluster_index).astype(np.float64)
    means = {
        name: values[:, [system == name for system in systems]].mean(axis=1).astype(np.float64)
        for name in names
    }
    pairs = list(combinations(names, 2))

    def summed(rows: _Floats) -> _Floats:
        return np.bincount(cluster_index, rows).astype(np.float64)

    return tuple(
        _pair(measure, first, other, means, len(pairs), summed, sizes) for first, other in pairs
    )


def _pair(
    measure: Measure,
    first: str,
    other: str,
    means: Mapping[str, _Floats],
    pairs: int,
    summed: Callable[[_Floats], _Floats],
    sizes: _Floats,
) -> SystemPair:
    a, b = (summed(means[name] - (measure.null or 0.0)) for name in (first, other))
    claims, turn = [a - b], 1.0
    if measure.null is not None:
        turn = 1.0 if abs(a.sum()) >= abs(b.sum()) else -1.0
        far, near = (a, b) if turn > 0 else (b, a)
        sign = 1.0 if far.sum() >= 0 else -1.0
        claims = [sign * far - near, sign * far + near]
    adjusted = min(1.0, pairs * max(map(p_two_sided, claims)))
    difference = turn * min(float(sums.sum() / sizes.sum()) for sums in claims)
    ends = [_ends(sums, sizes, _ALPHA / pairs) for sums in claims]
    low = None if any(end[0] is None for end in ends) else min(end[0] or 0.0 for end in ends)
    highs = [end[1] for end in ends if end[1] is not None]
    high = min(highs, default=None)
    if turn < 0:
        low, high = (None if end is None else -end for end in (high, low))
    is_first = (difference < 0) is (measure.better != "higher" or measure.null is not None)
    return SystemPair(
        first=first,
        second=other,
        difference=difference,
        low=low,
        high=high,
        p_adjusted=adjusted,
        better=(first if is_first else other) if adjusted <= _ALPHA else None,
    )


def _ends(sums: _Floats, sizes: _Floats, level: float) -> tuple[float | None, float | None]:
    """The smallest and the largest difference that the test at this level does not refute."""
    middle = float(sums.sum() / sizes.sum())
    reach = float(np.ptp(sums / sizes)) + abs(middle) + 1.0

    def refuted(differences: _Floats, sign: float) -> NDArray[np.bool_]:
        shifted = sign * (differences[None, :] * sizes[:, None] - sums[:, None])
        return np.asarray(2 * p_of_columns(shifted) <= level)

    limits: list[float | None] = []
    for sign in (-1.0, 1.0):
        inside, outside = middle, middle + sign * reach
        if not refuted(np.array([outside]), sign)[0]:
            limits.append(None)  # so few clusters refute nothing
            continue
        for _ in range(_ROUNDS):
            tried = np.linspace(inside, outside, _GRID)
            first = int(np.argmax(refuted(tried, sign)))  # the last of them is refuted
            inside, outside = float(tried[max(first - 1, 0)]), float(tried[first])
        limits.append(inside)
    return limits[0], limits[1]


def ranking(pairs: Sequence[SystemPair], label: str) -> list[Remark]:
    """Return who is better than whom, and of whom neither is shown to be better."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    beaten = {
        name: tuple(
            worse
            for worse in names
            for pair in pairs
            if pair.better == name and worse in (pair.first, pair.second) and worse != name
        )
        for name in names
    }
    remarks = [
        Remark(
            "systems.better",
            better=tuple(name for name in names if beaten[name] == worse),
            worse=worse,
            measure=label,
        )
        for worse in dict.fromkeys(beaten.values())
        if worse
    ]
    alike = [pair for pair in pairs if pair.better is None]
    return remarks + [
        Remark("systems.alike", first=pair.first, second=pair.second) for pair in alike
    ]
