"""The two-sided sign-flip test over every pattern of signs: a second route to its p-value."""

from collections.abc import Hashable, Sequence

import numpy as np


def p_of_all_patterns(
    differences: Sequence[float], clusters: Sequence[Hashable] | None = None
) -> float:
    """Return the share of sign patterns of the clusters' sums whose total is as large."""
    sums: dict[Hashable, float] = {}
    for key, value in zip(clusters or range(len(differences)), differences, strict=True):
        sums[key] = sums.get(key, 0.0) + value
    totals = np.zeros(1)
    for value in sums.values():
        if abs(value) > 1e-12:  # what does not move changes no share
            totals = np.concatenate([totals + value, totals - value])
    room = 1e-12 * sum(map(abs, differences))
    return float(np.mean(np.abs(totals) >= abs(sum(sums.values())) - room))
