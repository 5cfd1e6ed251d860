"""Tables of counts and ranks, against scipy and under copying, transposing and relabelling."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, friedmanchisquare
from scipy.stats.contingency import association

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.tables import chi_square, fisher_p, friedman
from tests.errors import raises_naming

Cells = list[list[int]]
tables = st.tuples(st.integers(2, 4), st.integers(2, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(1, 60), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@settings(max_examples=60)
@given(table=tables, copies=st.integers(2, 10))
def test_copies_multiply_chi_square_and_leave_cramers_v(table: Cells, copies: int) -> None:
    once, more = chi_square(table), chi_square((copies * np.array(table)).tolist())
    assert more.chi2 == pytest.approx(copies * once.chi2, abs=1e-9)
    assert more.cramers_v == pytest.approx(once.cramers_v, abs=1e-9)
    assert more.p_value <= once.p_value + 1e-12


@settings(max_examples=60)
@given(table=tables)
def test_v_agrees_with_scipy_and_stays_when_rows_and_columns_change_places(table: Cells) -> None:
    found, turned = chi_square(table), chi_square(np.array(table).T)
    assert found.cramers_v == pytest.approx(association(table, method="cramer"), abs=1e-9)
    assert 0 <= found.cramers_v <= 1
    assert turned.chi2 == pytest.approx(found.chi2)
    assert turned.cramers_v_corrected == pytest.approx(found.cramers_v_corrected)
    assert found.cramers_v_corrected is not None
    assert found.cramers_v_corrected <= found.cramers_v + 1e-9


def test_empty_rows_and_columns_are_left_out_and_counted() -> None:
    full = chi_square([[12, 30, 58], [20, 41, 39]])
    found = chi_square([[12, 0, 30, 58], [0, 0, 0, 0], [20, 0, 41, 39]])
    assert found.dropped == 2
    assert (found.chi2, found.df, found.p_value) == (full.chi2, full.df, full.p_value)


def test_the_correction_is_applied_only_where_it_was_asked_for_and_leaves_v() -> None:
    table = [[30, 20], [18, 32]]
    plain, corrected = chi_square(table), chi_square(table, yates=True)
    assert corrected.chi2 < plain.chi2
    assert corrected.cramers_v == plain.cramers_v
    with raises_naming(UserError, "Yates", "2 × 2"):
        chi_square([[1, 2, 3], [4, 5, 6]], yates=True)


def test_perfect_association_has_v_one_and_two_observations_no_corrected_v() -> None:
    found = chi_square([[50, 0], [0, 50]])
    assert found.cramers_v == pytest.approx(1)
    assert found.cramers_v_corrected == pytest.approx(1)
    assert chi_square([[1, 0], [0, 1]]).cramers_v_corrected is None


@pytest.mark.parametrize("table", [[[5, 3]], [[5], [3]], [[5, 3], [0, 0]], [[0, 0], [0, 0]]])
def test_a_table_of_one_group_or_one_outcome_is_undefined(table: Cells) -> None:
    with pytest.raises(Undefined):
        chi_square(table)


def test_fishers_test_names_what_it_cannot_do() -> None:
    with pytest.raises(Undefined):
        fisher_p([[3, 4], [0, 0]])
    with raises_naming(UserError, "2 × 2", "2 × 3"):
        fisher_p([[1, 2, 3], [4, 5, 6]])


@settings(max_examples=40)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 30), st.integers(1, 30))
def test_fisher_sums_the_tables_no_likelier_than_the_one_seen(
    a: int, b: int, c: int, d: int
) -> None:
    if not a + b:
        return
    row, column, n = a + b, a + c, a + b + c + d
    likely = {
        k: math.comb(column, k) * math.comb(n - column, row - k)
        for k in range(max(0, row + column - n), min(row, column) + 1)
    }
    wanted = sum(w for w in likely.values() if w <= likely[a]) / math.comb(n, row)
    assert fisher_p([[a, b], [c, d]]) == pytest.approx(wanted, rel=1e-9)


blocks = st.integers(3, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 10), min_size=k, max_size=k), min_size=2, max_size=12
    )
)


@settings(max_examples=60)
@given(scores=blocks)
def test_friedman_agrees_with_scipy_and_sees_only_ranks_within_blocks(scores: Cells) -> None:
    if all(len(set(row)) == 1 for row in scores):
        return
    found = friedman(scores)
    theirs = friedmanchisquare(*np.array(scores).T)
    assert found.chi2 == pytest.approx(theirs.statistic, abs=1e-9)
    assert found.p_value == pytest.approx(theirs.pvalue, abs=1e-9)
    assert -1e-9 <= found.kendalls_w <= 1 + 1e-9
    shifted = [
        [(value + 3) ** 3 + 100 * number for value in row] for number, row in enumerate(scores)
    ]
    assert friedman(shifted) == found


def test_two_labels_make_a_sign_test_without_its_exactness() -> None:
    scores = [[1, 2]] * 15 + [[2, 1]] * 5
    found = friedman(scores)  # scipy refuses two treatments
    assert found.chi2 == pytest.approx((15 - 5) ** 2 / 20)
    assert found.p_value == pytest.approx(binomtest(5, 20).pvalue, abs=0.02)
    assert friedman([[1, 2, 3]] * 6).kendalls_w == 1


@pytest.mark.parametrize("scores", [[], [[1.0], [2.0]], [[1, 2, None]], [[3, 3, 3], [5, 5, 5]]])
def test_blocks_that_rank_nothing_are_undefined(scores: list[list[float]]) -> None:
    with pytest.raises(Undefined):
        friedman(scores)
