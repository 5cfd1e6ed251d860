"""The Pareto front is the set of options that no other option beats on every criterion."""

import math
from collections.abc import Sequence

from evenhand.errors import UserError


def dominates(first: Sequence[float], second: Sequence[float]) -> bool:
    """At least as good in everything and better in something; smaller is better."""
    return all(a <= b for a, b in zip(first, second, strict=True)) and any(
        a < b for a, b in zip(first, second, strict=True)
    )


def front(points: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """The places, in the order given, of the points that no other one dominates.

    Every coordinate is to be small: negate what is to be large. Equal points stay or go together.
    Source: Pareto 1906. Always defined; of no points it is empty. A coordinate that is not a number
    compares with nothing, so it is refused.
    """
    if any(math.isnan(value) for point in points for value in point):
        raise UserError("a point with a coordinate that is not a number has no place in a front")
    return tuple(
        index
        for index, point in enumerate(points)
        if not any(dominates(other, point) for other in points)
    )
