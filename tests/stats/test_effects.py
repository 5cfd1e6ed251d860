"""Effect sizes against the tests that they are the other face of."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, ttest_1samp, ttest_ind

from evenhand.errors import Undefined, UserError
from evenhand.statistics.effects import (
    cliffs_delta,
    cohen_d_pooled,
    cohen_dz,
    cohen_h,
    hedges_correction,
    hedges_gz,
)

group = st.lists(st.integers(0, 10), min_size=1, max_size=12)


def test_paired_and_pooled_sizes_follow_from_their_t_statistics() -> None:
    rng = np.random.default_rng(1)
    one, two = rng.normal(0.4, 1, 25), rng.normal(0, 2, 14)
    assert cohen_dz(one) == pytest.approx(ttest_1samp(one, 0).statistic / 5)
    t = ttest_ind(one, two).statistic
    assert cohen_d_pooled(one, two) == pytest.approx(t * math.sqrt(1 / 25 + 1 / 14))


@settings(max_examples=60)
@given(one=group, two=group)
def test_cliffs_delta_is_mann_whitneys_u_rescaled_and_antisymmetric(
    one: list[int], two: list[int]
) -> None:
    u = mannwhitneyu(one, two, method="asymptotic").statistic
    assert cliffs_delta(one, two) == pytest.approx(2 * u / (len(one) * len(two)) - 1)
    assert cliffs_delta(one, two) == -cliffs_delta(two, one)


def test_the_hedges_correction_shrinks_and_its_short_form_is_near() -> None:
    for df in range(2, 200):
        assert 0 < hedges_correction(df) < 1
        assert hedges_correction(df) == pytest.approx(
            hedges_correction(df, exact=False), abs=0.01 if df == 2 else 0.004
        )
    assert hedges_correction(2) == pytest.approx(1 / math.sqrt(math.pi))  # Γ(1)/Γ(½)


def test_shares_are_compared_on_the_arcsine_scale() -> None:
    assert cohen_h(1, 0) == pytest.approx(math.pi)
    assert cohen_h(0.3, 0.6) == -cohen_h(0.6, 0.3)
    with pytest.raises(UserError):
        cohen_h(1.2, 0.5)


def test_sizes_without_spread_or_data_are_undefined() -> None:
    for differences in ([], [0.3], [0.1, 0.1, 0.1]):
        with pytest.raises(Undefined):
            cohen_dz(differences)
    with pytest.raises(Undefined, match="at least 2"):
        hedges_gz([0.1, 0.4])
    for one, two in (([], [1.0]), ([1.0], [2.0]), ([0.1] * 3, [0.3] * 3)):
        with pytest.raises(Undefined):
            cohen_d_pooled(one, two)
    with pytest.raises(Undefined, match="empty group"):
        cliffs_delta([], [1.0])
