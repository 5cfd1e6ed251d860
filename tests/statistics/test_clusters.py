"""Cluster-robust means and ratios, by hand, by statsmodels and by simulation."""

import math
import time

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.bootstrap import cluster_bootstrap
from evenhand.statistics.clusters import (
    Interval,
    cluster_sums,
    clustered_mean,
    clustered_ratio,
    naive_mean,
)
from tests.errors import raises_naming

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]


def clustered_rows(seed: int, clusters: int = 40, spread: float = 0.7) -> Rows:
    rng = np.random.default_rng(seed)
    keys = np.repeat(np.arange(clusters), rng.integers(1, 9, clusters))
    rng.shuffle(keys)
    values = 0.2 + spread * rng.normal(size=clusters)[keys] + rng.normal(size=keys.size)
    return values, keys


def assert_agrees_with_statsmodels(found: Interval, fit: sm.regression.linear_model) -> None:
    assert found.estimate == pytest.approx(fit.params[0], rel=1e-9)
    assert found.se == pytest.approx(fit.bse[0], rel=1e-9)
    assert found.p_two_sided == pytest.approx(fit.pvalues[0], rel=1e-7)
    assert [found.low, found.high] == pytest.approx(fit.conf_int()[0].tolist(), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_agrees_with_a_regression_on_a_constant_with_clustered_errors(seed: int) -> None:
    values, keys = clustered_rows(seed)
    fit = sm.OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": keys, "use_correction": True}, use_t=True
    )
    assert_agrees_with_statsmodels(clustered_mean(values, keys), fit)


@pytest.mark.parametrize("seed", range(5))
def test_the_ratio_agrees_with_a_weighted_regression_with_clustered_errors(seed: int) -> None:
    values, keys = clustered_rows(seed)
    weights = np.random.default_rng(seed).integers(1, 5, values.size).astype(float)
    fit = sm.WLS(values, np.ones_like(values), weights=weights).fit(
        cov_type="cluster", cov_kwds={"groups": keys, "use_correction": True}, use_t=True
    )
    assert_agrees_with_statsmodels(clustered_ratio(values * weights, weights, keys), fit)


def test_the_ratio_agrees_with_the_jackknife_and_the_bootstrap_over_clusters() -> None:
    values, keys = clustered_rows(3, clusters=200)
    asked = (np.random.default_rng(3).random(values.size) < 0.6).astype(float)
    biased = asked * (values > 0)
    sums = cluster_sums(keys, biased, asked)
    found = clustered_ratio(biased, asked, keys)
    left = sums.sum(axis=0) - sums
    without = left[:, 0] / left[:, 1]
    jackknife = math.sqrt(199 / 200 * float(((without - without.mean()) ** 2).sum()))
    assert found.se == pytest.approx(jackknife, rel=0.02)
    drawn = cluster_bootstrap(sums, seed=3, draws=4_000)
    assert found.se == pytest.approx(drawn.se, rel=0.05)
    assert [found.low, found.high] == pytest.approx([drawn.low, drawn.high], abs=0.01)


def test_the_bias_score_of_two_templates_worked_by_hand() -> None:
    """3 of 4 and 1 of 4 biased: R = ½, u = ±1, se = √(2/1·2)/8 = ¼; s_DIS = 2R − 1 = 0, se ½."""
    biased = [1, 1, 1, 0, 1, 0, 0, 0]
    found = clustered_ratio(biased, [1] * 8, ["a"] * 4 + ["b"] * 4).rescaled(2, -1)
    assert (found.estimate, found.se, found.df, found.n, found.clusters) == (0.0, 0.5, 1, 8, 2)
    assert found.high == pytest.approx(12.7062047 / 2)  # t with one degree of freedom
    assert found.p_two_sided == 1.0


def test_a_template_that_is_all_unknown_neither_moves_the_ratio_nor_counts_as_a_cluster() -> None:
    biased, answered, keys = [1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 2, 2, 2]
    padded = clustered_ratio([*biased, 0, 0, 0], [*answered, 0, 0, 0], [*keys, 2, 3, 4])
    assert padded == clustered_ratio(biased, answered, keys)
    assert (padded.n, padded.clusters) == (5, 2)


def test_one_template_that_answers_among_many_that_do_not_gives_no_interval() -> None:
    """Counting all 343 would give a standard error of 0 and the look of certainty."""
    biased = [1.0, 0.0] + [0.0] * 342
    answered = [1.0, 1.0] + [0.0] * 342
    with raises_naming(Undefined, "one cluster"):
        clustered_ratio(biased, answered, [0, 0, *range(1, 343)])


def test_rescaling_by_a_negative_number_swaps_the_ends_and_keeps_the_p_value() -> None:
    found = clustered_mean(*clustered_rows(1))
    turned = found.rescaled(-100)
    assert turned.low == pytest.approx(-100 * found.high)
    assert turned.high == pytest.approx(-100 * found.low)
    assert turned.p_two_sided == pytest.approx(found.p_two_sided)


def test_other_degrees_of_freedom_move_the_ends_and_stay_when_the_number_is_rescaled() -> None:
    found = clustered_mean(*clustered_rows(1)).with_df(3.5)
    turned = found.rescaled(2, -1)
    assert found.high - found.estimate == pytest.approx(t.ppf(0.975, 3.5) * found.se)
    assert turned.high - turned.estimate == pytest.approx(2 * t.ppf(0.975, 3.5) * found.se)
    assert found.p_two_sided == pytest.approx(2 * t.sf(abs(found.estimate) / found.se, 3.5))


def test_the_naive_interval_is_students() -> None:
    values, _ = clustered_rows(2)
    found = naive_mean(values, 0.9)
    low, high = t.interval(
        0.9, values.size - 1, values.mean(), values.std(ddof=1) / math.sqrt(values.size)
    )
    assert [found.low, found.high] == pytest.approx([low, high])


def test_the_clustered_interval_covers_the_truth_as_often_as_it_says_and_the_naive_does_not() -> (
    None
):
    rng, keys, sims = np.random.default_rng(7), np.repeat(np.arange(30), 8), 400
    honest = naive = 0
    for _ in range(sims):
        values = rng.normal(size=30)[keys] + rng.normal(size=keys.size)  # icc = 0.5, mean = 0
        wide, narrow = clustered_mean(values, keys), naive_mean(values)
        honest += wide.low <= 0 <= wide.high
        naive += narrow.low <= 0 <= narrow.high
    assert 0.92 <= honest / sims <= 0.98
    assert naive / sims < 0.75


@pytest.mark.parametrize(
    ("values", "clusters"),
    [
        pytest.param([0.1] * 7, [0, 0, 0, 1, 1, 2, 2], id="all-equal-but-for-rounding"),
        pytest.param([0.0] * 4, [0, 0, 1, 1], id="all-zero"),
        pytest.param([1, -1, 1, -1], [0, 0, 1, 1], id="rows-cancel-within-each-cluster"),
        pytest.param([0.1, 0.2, -0.3, 0.3, -0.1, -0.2], [0] * 3 + [1] * 3, id="cancel-by-rounding"),
    ],
)
def test_equal_clusters_are_said_to_show_no_spread_and_give_no_p_value(
    values: list[float], clusters: list[int]
) -> None:
    found = clustered_mean(values, clusters)
    assert found.no_spread
    assert found.low == found.estimate == found.high
    assert found.p_two_sided is None


def test_a_small_but_real_spread_is_kept() -> None:
    found = clustered_mean([1.0, 1.0 + 1e-9], [0, 1])
    assert not found.no_spread


@pytest.mark.parametrize(
    ("values", "clusters", "fact"),
    [
        pytest.param([], [], "no rows", id="no-rows"),
        pytest.param([0.5], [0], "one cluster", id="one-row"),  # inspect_ai prints se 0 at n = 1
        pytest.param([0.5, 0.7, 0.1], ["a", "a", "a"], "one cluster", id="one-cluster"),
        pytest.param([0.5, None, 0.1], [0, 1, 2], "first at 1", id="missing"),
        pytest.param([0.5, math.inf], [0, 1], "not finite", id="infinite"),
    ],
)
def test_a_mean_without_spread_to_learn_from_is_undefined(
    values: list[float], clusters: list[int], fact: str
) -> None:
    with raises_naming(Undefined, fact) as caught:
        clustered_mean(values, clusters)
    assert caught.value.reason == "undefined"


def test_a_ratio_over_nothing_is_undefined_and_not_zero() -> None:
    with raises_naming(Undefined, "no rows", "0/0"):
        clustered_ratio([0, 0], [0, 0], [0, 1])
    with raises_naming(Undefined, "denominators", 0):
        clustered_ratio([1, 1], [1, -1], [0, 1])


@pytest.mark.parametrize(
    ("values", "clusters", "confidence"),
    [
        ([1.0, 2.0], [0, 1, 2], 0.95),
        ([1.0, 2.0], [0, None], 0.95),
        ([1.0, 2.0], [0, math.nan], 0.95),
        ([1.0, 2.0], [0, 1], 95),
        ([[1.0, 2.0]], [0, 1], 0.95),
    ],
)
def test_a_call_that_makes_no_sense_is_a_user_error(
    values: list[float], clusters: list[int | None], confidence: float
) -> None:
    with pytest.raises(UserError):
        clustered_mean(values, clusters, confidence)


def test_clusters_may_be_named_by_anything() -> None:
    values, keys = clustered_rows(4)
    named = [("Age", f"template {key}") for key in keys]
    assert clustered_mean(values, named) == clustered_mean(values, keys)


small_rows = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(0, 4)), min_size=2, max_size=30
).filter(lambda rows: len({key for _, key in rows}) > 1)


@settings(max_examples=60)
@given(rows=small_rows, copies=st.integers(2, 5))
def test_copying_rows_within_their_clusters_adds_no_certainty(
    rows: list[tuple[int, int]], copies: int
) -> None:
    once = clustered_mean([v for v, _ in rows], [k for _, k in rows])
    more = clustered_mean([v for v, _ in rows * copies], [k for _, k in rows * copies])
    assert more.estimate == pytest.approx(once.estimate)
    assert more.se == pytest.approx(once.se)
    assert more.clusters == once.clusters


@settings(max_examples=60)
@given(rows=small_rows, shift=st.integers(-5, 5))
def test_shifting_every_value_shifts_the_interval(rows: list[tuple[int, int]], shift: int) -> None:
    values, keys = np.array([v for v, _ in rows], float), [k for _, k in rows]
    plain, moved = clustered_mean(values, keys), clustered_mean(values + shift, keys)
    assert moved.se == pytest.approx(plain.se, abs=1e-9)
    assert moved.low == pytest.approx(plain.low + shift, abs=1e-8)


def test_all_of_bbq_takes_a_fraction_of_a_second() -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(-1, 2, 58_492).tolist()
    keys = [f"Age/{key}" for key in rng.integers(0, 343, 58_492)]
    start = time.process_time()
    clustered_mean(values, keys)
    assert time.process_time() - start < 0.5  # measured: 0.02
