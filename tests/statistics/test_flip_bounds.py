"""A lower bound is the sign-flip test, inverted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.sign_flips import lower_bounds, p_of_columns


def test_the_bound_of_six_clusters_is_the_second_smallest_mean_of_their_subsets() -> None:
    """Of 64 subsets 0.025 · 64 = 1.6 may lie below: the empty one. The smallest mean of the others
    is that of the smallest cluster alone."""
    sums = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    assert lower_bounds(sums, np.ones(6), 0.025)[0] == pytest.approx(1.0)
    assert lower_bounds(sums, 2 * np.ones(6), 0.025)[0] == pytest.approx(0.5)


def test_five_clusters_show_nothing_at_one_in_forty() -> None:
    assert lower_bounds(np.ones(5), np.ones(5), 0.025)[0] == -np.inf


@given(st.lists(st.integers(-4, 8), min_size=1, max_size=24), st.sampled_from([0.025, 0.005, 0.1]))
def test_a_bound_is_above_zero_where_the_test_is_significant_and_nowhere_else(
    sums: list[int], alpha: float
) -> None:
    bound = lower_bounds(sums, np.ones(len(sums)), alpha)[0]
    assert (bound > 0) == (p_of_columns(sums)[0] <= alpha)
