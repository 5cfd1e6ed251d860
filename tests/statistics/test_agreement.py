"""Agreement, against statsmodels and against the definitions written out pair by pair."""

import functools
import itertools
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.agreement import (
    Level,
    alpha_sums,
    fleiss_of_totals,
    fleiss_sums,
    krippendorff_alpha,
    quadratic_weighted_kappa,
    rater_agreement,
    weighted_of_totals,
    weighted_sums,
)
from evenhand.statistics.bootstrap import Statistic, of_all
from tests.errors import raises_naming

LEVELS: tuple[Level, ...] = get_args(Level)
scores = st.integers(0, 10)
pairs = st.lists(st.tuples(scores, scores), min_size=2, max_size=15).filter(
    lambda rows: len({value for row in rows for value in row}) > 1
)


@pytest.mark.parametrize("seed", range(4))
def test_fleiss_kappa_agrees_with_statsmodels(seed: int) -> None:
    table = np.random.default_rng(seed).multinomial(5, [0.5, 0.3, 0.2], size=12)
    assert _fleiss(table) == pytest.approx(inter_rater.fleiss_kappa(table, "fleiss"))


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        ([[5, 0], [5, 0]], "0/0"),
        ([[2, 1], [1, 1]], "krippendorff_alpha"),
        ([[1, 0], [0, 1]], "one rater"),
        ([[0, 0]], "no ratings"),
    ],
)
def test_fleiss_is_undefined_where_chance_or_raters_are_missing(
    table: list[list[int]], fact: str
) -> None:
    with raises_naming(Undefined, fact):
        _fleiss(table)


@pytest.mark.parametrize("table", [[[1, 2], [3]], [[1, -1]], [[0.5, 0.5]], [1, 2]])
def test_what_is_no_table_of_counts_is_refused(table: list[list[int]]) -> None:
    with pytest.raises(UserError):
        rater_agreement(table)


def alpha_by_pairs(ratings: list[list[float | None]], level: Level) -> float:
    """Every ordered pair of ratings, as in Krippendorff's own wording."""
    units = [[r for r in unit if r is not None] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    pool = [r for unit in units for r in unit]

    def apart(one: float, two: float) -> float:
        if level == "nominal":
            return float(one != two)
        if level == "interval":
            return (one - two) ** 2
        between = sum(min(one, two) <= r <= max(one, two) for r in pool)
        return (between - (pool.count(one) + pool.count(two)) / 2) ** 2 if one != two else 0.0

    seen = sum(
        sum(apart(a, b) for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1)
        for unit in units
    )
    chance = sum(apart(a, b) for a, b in itertools.permutations(pool, 2))
    return 1 - seen / (chance / (len(pool) - 1))


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=40)
@given(data=st.data())
def test_alpha_equals_its_definition_pair_by_pair(level: Level, data: st.DataObject) -> None:
    units = data.draw(st.integers(1, 8))
    score = st.sampled_from([None, 0.0, 1.0, 2.0, 3.0, 4.0])
    row = st.lists(score, min_size=units, max_size=units)
    ratings = data.draw(st.lists(row, min_size=2, max_size=4))
    try:
        found = krippendorff_alpha(ratings, level)
    except Undefined:
        kept = [[r for r in unit if r is not None] for unit in zip(*ratings, strict=True)]
        assert len({r for unit in kept if len(unit) > 1 for r in unit}) < 2
    else:
        assert found == pytest.approx(alpha_by_pairs(ratings, level), abs=1e-9)


@settings(max_examples=40)
@given(rows=pairs)
def test_ordinal_alpha_sees_only_the_order_and_interval_alpha_only_the_proportions(
    rows: list[tuple[int, int]],
) -> None:
    ratings = np.array(rows, float).T
    ordinal = krippendorff_alpha(ratings, "ordinal")
    assert krippendorff_alpha(ratings**3 + 1, "ordinal") == pytest.approx(ordinal)
    interval = krippendorff_alpha(ratings, "interval")
    assert krippendorff_alpha(10 * ratings - 7, "interval") == pytest.approx(interval)


@pytest.mark.parametrize("level", LEVELS)
def test_raters_who_always_agree_reach_one_and_units_rated_once_do_not_count(level: Level) -> None:
    assert krippendorff_alpha([[1, 2, 3], [1, 2, 3]], level) == 1
    once = krippendorff_alpha([[1, 2, 4], [1, 3, 4]], level)
    sparse: list[list[float | None]] = [[1, 2, 4, 9, None], [1, 3, 4, None, None]]
    assert krippendorff_alpha(sparse, level) == once


def test_alpha_without_pairs_or_without_difference_is_undefined() -> None:
    with raises_naming(Undefined, "two ratings"):
        krippendorff_alpha(np.array([[1, np.nan], [np.nan, 2]]), "nominal")
    with raises_naming(Undefined, "equal", "0/0"):
        krippendorff_alpha([[3, 3], [3, 3]], "ordinal")
    with raises_naming(Undefined, "infinite"):
        krippendorff_alpha(np.array([[3, np.inf], [3, 3]]), "interval")
    with pytest.raises(UserError):
        krippendorff_alpha([1.0, 2.0], "interval")


@settings(max_examples=60)
@given(rows=pairs)
def test_weighted_kappa_equals_its_matrix_form_and_is_symmetric(
    rows: list[tuple[int, int]],
) -> None:
    one, two = [a for a, _ in rows], [b for _, b in rows]
    observed = np.zeros((11, 11))
    np.add.at(observed, (one, two), 1)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / len(rows)
    weights = (np.arange(11)[:, None] - np.arange(11)) ** 2 / 100
    wanted = 1 - float((weights * observed).sum() / (weights * expected).sum())
    assert quadratic_weighted_kappa(one, two, (0, 10)) == pytest.approx(wanted)
    assert quadratic_weighted_kappa(two, one) == pytest.approx(wanted)


def test_weighted_kappa_refuses_what_lies_off_the_scale_and_has_no_value_without_spread() -> None:
    with raises_naming(UserError, "0 to 10"):
        quadratic_weighted_kappa([1, 11], [2, 3], (0, 10))
    with raises_naming(UserError, "raters", 2, 1):
        quadratic_weighted_kappa([1, 2], [2])
    with raises_naming(Undefined, "equal", "0/0"):
        quadratic_weighted_kappa([4, 4], [4, 4])
    with raises_naming(Undefined, "no ratings"):
        quadratic_weighted_kappa([], [])
    assert quadratic_weighted_kappa([4, 4], [5, 5]) == 0  # constant, but not the same constant


MARKS = st.one_of(st.none(), st.integers(0, 4))


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(MARKS, MARKS, MARKS), min_size=2, max_size=8), data=st.data())
def test_a_resample_of_sums_is_the_agreement_of_the_resampled_subjects(
    rows: list[tuple[int | None, ...]], data: st.DataObject
) -> None:
    """The interval's route (totals over subjects) against the plain one, on subjects drawn twice,
    once or never; no value on the one is no value on the other."""
    times = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    drawn = [row for row, n in zip(rows, times, strict=True) for _ in range(n)]
    ratings = np.array(rows, dtype=np.float64).T
    again = np.array(drawn, dtype=np.float64).reshape(-1, 3).T
    for level in LEVELS:
        try:
            sums, alpha = alpha_sums(ratings, level)
        except Undefined:
            continue
        plain = _plain(functools.partial(krippendorff_alpha, again, level))
        assert _of(np.array(times) @ sums, alpha) == plain
    both = ~np.isnan(again[:2]).any(axis=0)
    pair = weighted_sums(ratings[0], ratings[1])
    assert _of(np.array(times) @ pair, weighted_of_totals) == _plain(
        lambda: quadratic_weighted_kappa(again[0][both], again[1][both])
    )
    whole = [row for row in rows if None not in row]
    if whole:
        table = [[row.count(mark) for mark in range(5)] for row in whole]
        kept = [n for row, n in zip(rows, times, strict=True) if None not in row]
        twice = [line for line, n in zip(table, kept, strict=True) for _ in range(n)]
        assert _of(np.array(kept) @ fleiss_sums(table), fleiss_of_totals) == _plain(
            lambda: _fleiss(np.array(twice).reshape(-1, 5))
        )


def _fleiss(table: list[list[int]] | np.ndarray) -> float:
    return of_all(fleiss_sums(table), fleiss_of_totals)


def _of(totals: np.ndarray, statistic: Statistic) -> object:
    with np.errstate(divide="ignore", invalid="ignore"):
        (value,) = statistic(totals[None, :]).tolist()
    return pytest.approx(value, abs=1e-9) if np.isfinite(value) else "no value"


def _plain(agreement: Callable[[], float]) -> object:
    try:
        return agreement()
    except Undefined:
        return "no value"
