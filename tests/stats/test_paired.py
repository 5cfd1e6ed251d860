"""Change counts, exact McNemar and sign flips: against each other, scipy and statsmodels."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test
from statsmodels.stats.contingency_tables import mcnemar

from evenhand.errors import Undefined, UserError
from evenhand.statistics.paired import changes, mcnemar_p, sign_flip

counts = st.integers(0, 40)


def test_an_item_without_a_verdict_is_missing_and_not_wrong() -> None:
    found = changes([True, False, True, False, None, True], [True, True, False, False, True, None])
    assert (found.fixed, found.broken, found.both_right, found.both_wrong) == (1, 1, 1, 1)
    assert (found.n, found.missing, found.net) == (4, 2, 0)
    assert found.coverage == pytest.approx(4 / 6)


def test_nothing_compared_has_no_coverage_and_unequal_lists_do_not_pair() -> None:
    assert changes([], []).coverage is None
    with pytest.raises(UserError, match="2 and 1"):
        changes([True, False], [True])


@settings(max_examples=60)
@given(fixed=counts, broken=counts)
def test_mcnemar_is_symmetric_in_fixed_and_broken(fixed: int, broken: int) -> None:
    assert mcnemar_p(fixed, broken) == pytest.approx(mcnemar_p(broken, fixed), rel=1e-12)


@settings(max_examples=60)
@given(fixed=counts, broken=counts)
def test_mcnemar_agrees_with_statsmodels(fixed: int, broken: int) -> None:
    theirs = mcnemar([[5, fixed], [broken, 5]], exact=True).pvalue if fixed + broken else 1.0
    assert mcnemar_p(fixed, broken) == pytest.approx(min(1.0, theirs), rel=1e-9)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(UserError):
        mcnemar_p(-1, 3)


@settings(max_examples=60)
@given(fixed=st.integers(0, 10), broken=st.integers(0, 10), same=st.integers(1, 30))
def test_flipping_the_signs_of_single_changes_is_mcnemars_test(
    fixed: int, broken: int, same: int
) -> None:
    found = sign_flip([1] * fixed + [-1] * broken + [0] * same)
    assert found.exact
    assert found.p_two_sided == pytest.approx(mcnemar_p(fixed, broken), rel=1e-12)


tenths = st.lists(st.integers(-9, 9), min_size=1, max_size=9)


@settings(max_examples=60)
@given(tenths=tenths)
def test_ties_in_floating_point_are_counted_as_in_whole_numbers(tenths: list[int]) -> None:
    """0.1 + 0.2 − 0.3 is not 0 in floating point: without a guard ties fall out of the count."""
    totals = [
        sum(sign * value for sign, value in zip(signs, tenths, strict=True))
        for signs in itertools.product((1, -1), repeat=len(tenths))
    ]
    hits = sum(abs(total) >= abs(sum(tenths)) for total in totals)
    found = sign_flip([value / 10 for value in tenths])
    assert found.p_two_sided == hits / len(totals)


@settings(max_examples=30)
@given(tenths=tenths)
def test_turning_every_difference_round_changes_nothing(tenths: list[int]) -> None:
    turned = sign_flip([-value / 10 for value in tenths]).p_two_sided
    assert turned == sign_flip([value / 10 for value in tenths]).p_two_sided


def test_the_exact_sign_flip_agrees_with_scipy() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, 12)
    theirs = permutation_test(
        (differences,),
        lambda d, axis=-1: d.mean(axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert sign_flip(differences).p_two_sided == pytest.approx(theirs.pvalue)


def test_a_cluster_flips_as_a_whole() -> None:
    """Sums 3, 2, −1 of three clusters: |±3 ±2 ±1| ≥ 4 in 4 of 8 patterns (6, 4, −4, −6)."""
    found = sign_flip([1, 1, 1, 2, -0.5, -0.5], ["a", "a", "a", "b", "c", "c"])
    assert (found.p_two_sided, found.units, found.n, found.flips) == (0.5, 3, 6, 8)
    assert sign_flip([1, 1, 1, 2, -0.5, -0.5]).p_two_sided < 0.5  # rows alone claim more


def test_ten_copies_of_a_cluster_are_not_ten_pieces_of_evidence() -> None:
    differences, keys = [0.3, 0.5, -0.1, 0.4], [0, 1, 2, 3]
    once = sign_flip(differences, keys)
    assert sign_flip(differences * 10, keys * 10).p_two_sided == once.p_two_sided
    assert sign_flip(differences * 10).p_two_sided < 0.01


@pytest.mark.parametrize(("fixed", "broken"), [(40, 22), (25, 33), (31, 31), (30, 27)])
def test_random_flips_approach_the_exact_p_value(fixed: int, broken: int) -> None:
    found = sign_flip([1] * fixed + [-1] * broken, seed=2, draws=40_000)
    assert not found.exact
    assert found.flips == 40_000
    assert found.p_two_sided == pytest.approx(mcnemar_p(fixed, broken), abs=0.008)


def test_random_flips_follow_their_seed_and_never_give_zero() -> None:
    differences = np.random.default_rng(3).normal(0.2, 1, 50)
    assert sign_flip(differences, seed=4) == sign_flip(differences, seed=4)
    assert sign_flip(differences, seed=4) != sign_flip(differences, seed=5)
    assert sign_flip([1.0] * 60, draws=999).p_two_sided == 1 / 1000


def test_no_change_at_all_is_no_evidence_and_no_items_are_undefined() -> None:
    assert sign_flip([0.0] * 30).p_two_sided == 1
    assert sign_flip([0.1, 0.2, -0.3], ["a"] * 3).p_two_sided == 1  # 0 but for rounding
    with pytest.raises(Undefined, match="no differences"):
        sign_flip([])
    with pytest.raises(UserError, match="draws"):
        sign_flip([1.0], draws=0)
