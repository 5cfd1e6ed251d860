"""Tests of a mean that hold with few clusters and rare effects, and that a worse value never
improves."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import Undefined
from evenhand.statistics.bounded import p_below
from evenhand.statistics.sign_flips import p_above_zero

VALUES = st.lists(st.integers(-10, 10).map(float), min_size=1, max_size=20)


@pytest.mark.parametrize(("clusters", "margin", "largest"), [(60, 0.25, 3.0), (12, 0.05, 1.0)])
def test_clusters_without_any_effect_allow_what_none_of_so_many_allows(
    clusters: int, margin: float, largest: float
) -> None:
    expected = (1 - margin / largest) ** clusters  # the chance of meeting none of that share
    assert p_below([0.0] * clusters, margin, largest) == pytest.approx(expected, rel=1e-6)


def test_of_zeros_and_ones_it_is_the_exact_binomial_test() -> None:
    """2 of 40 at a margin of 0.15: P(X ≤ 2) with X binomial, summed by hand."""
    exact = sum(comb(40, k) * 0.15**k * 0.85 ** (40 - k) for k in range(3))
    assert p_below([1.0] * 2 + [0.0] * 38, 0.15, 1.0) == pytest.approx(exact, rel=1e-6)


def test_few_clusters_that_all_agree_show_as_much_as_their_signs_do() -> None:
    assert p_above_zero([1.0] * 4) == 1 / 16
    assert p_above_zero([0.0] * 4) == 1.0
    assert p_above_zero([3.0, 1.0, -2.0]) == 3 / 8  # of 8 subsets: none, {−2}, {1, −2}
    assert p_above_zero([0.5] * 60) < 0.001


def test_nothing_seen_has_no_p_value() -> None:
    with pytest.raises(Undefined):
        p_below([], 0.25, 3.0)


@given(VALUES, st.data())
@settings(max_examples=200, deadline=None)
def test_a_worse_value_in_any_cluster_never_improves_either_test(
    values: list[float], data: st.DataObject
) -> None:
    worse = np.array(values)
    for place in data.draw(st.sets(st.integers(0, len(values) - 1))):
        worse[place] += data.draw(st.floats(0, 10))
    assert p_below(worse, 0.25, 3.0) >= p_below(values, 0.25, 3.0) - 1e-9
    assert p_above_zero(worse) <= p_above_zero(values)
