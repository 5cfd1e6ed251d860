"""Shares over clusters, by hand, against scipy, and by simulation; and what no spread allows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, t

from evenhand.core.errors import Undefined
from evenhand.statistics.proportions import (
    clustered_balance,
    clustered_share,
    evenness,
    without_spread,
)
from tests.errors import raises_naming


def sums(clusters: list[list[float]]) -> np.ndarray:
    """The totals of clusters of rows."""
    return np.array([[len(c), sum(c), len(c), sum(map(abs, c)), len(c)] for c in clusters], float)


def test_a_share_of_clusters_with_one_row_each_is_that_of_clopper_and_pearson() -> None:
    """Then the design effect is n/(n − 1) by the CR1 correction, and n* = n − 1."""
    found = clustered_share(sums([[1.0]] * 3 + [[0.0]] * 17))
    assert (found.estimate, found.clusters) == (0.15, 20)
    n = 19.0
    expected = beta.ppf(0.025, 0.15 * n, n - 0.15 * n + 1), beta.ppf(0.975, 0.15 * n + 1, n * 0.85)
    assert (found.low, found.high) == pytest.approx(expected)


def test_the_effective_n_of_korn_and_graubard_worked_by_hand() -> None:
    """Four clusters of five rows with 5, 0, 1 and 2 events: p = 8/20 = 0.4, and the deviations
    from 2 are 3, −2, −1 and 0, so se² = 4/3 · 14/400 = 0.046667. n* = 0.24/0.046667 = 5.142857,
    times (t19/t3)² = (2.093024/3.182446)²."""
    rows = [[1.0] * k + [0.0] * (5 - k) for k in (5, 0, 1, 2)]
    n = 0.24 / (4 / 3 * 14 / 400) * (t.ppf(0.975, 19) / t.ppf(0.975, 3)) ** 2
    assert n == pytest.approx(5.142857 * 0.432542, rel=1e-5)
    expected = beta.ppf(0.025, 0.4 * n, 0.6 * n + 1), beta.ppf(0.975, 0.4 * n + 1, 0.6 * n)
    found = clustered_share(sums(rows))
    assert (found.low, found.high) == pytest.approx(expected)
    percent = clustered_share(sums([[100 * v for v in c] for c in rows]), 100.0)
    assert (percent.low, percent.high) == pytest.approx([100 * end for end in expected])


def test_a_share_of_weights_has_the_rows_and_clusters_of_kish_worked_by_hand() -> None:
    """The same rows, those of the last cluster three times as heavy: x = 5, 5, 5, 15, so of n = 20
    and G = 4 count 30²/(20·(25 + 25 + 25 + 225)/5) = 3/4, 15 rows and 3 clusters. Events weigh
    5, 0, 1 and 6: p = 12/30 = 0.4, and the deviations are 3, −2, −1 and 0 as above, so
    se² = 4/3 · 14/900 and n* = 0.24/se² · (t14/t2)²."""
    table = sums([[1.0] * k + [0.0] * (5 - k) for k in (5, 0, 1, 2)])
    table[3, 1:] *= 3
    assert evenness(table) == 0.75
    n = 0.24 / (4 / 3 * 14 / 900) * (t.ppf(0.975, 14) / t.ppf(0.975, 2)) ** 2
    assert n == pytest.approx(2.875294, rel=1e-5)
    found = clustered_share(table)
    assert found.estimate == pytest.approx(0.4)
    assert (found.df, found.n, found.clusters) == (2, 20, 4)
    expected = beta.ppf(0.025, 0.4 * n, 0.6 * n + 1), beta.ppf(0.975, 0.4 * n + 1, 0.6 * n)
    assert (found.low, found.high) == pytest.approx(expected)
    table[:, 1:] *= 7  # of weights only their proportions count
    again = clustered_share(table)
    assert (again.low, again.high) == pytest.approx(expected)


def test_more_rows_of_a_heavy_kind_than_count_are_no_more_certain() -> None:
    """One light cluster of 20 with an event in it: t has hardly any spread, and n* would be all 40
    rows. 10 weigh 1 and 10 weigh 9: of 40 count 40 · 200²/(40·(20 + 1620)) = 24.39."""
    table = sums([[1.0, 0.0]] + [[0.0, 0.0]] * 19)
    table[10:, 2] *= 9
    table[10:, 4] *= 9
    n, p = 200**2 / 1640, 1 / 200
    assert clustered_share(table).high == pytest.approx(beta.ppf(0.975, p * n + 1, n - p * n))


def test_heavy_clusters_without_spread_allow_no_less_than_those_that_count() -> None:
    """Of 25 single rows one weighs 1,000: 1024²/(1000² + 24) = 1.04855 count, so that all right
    still allows 0.025^(1/1.04855) = 0.02966, and not the 0.863 of 25."""
    table = sums([[1.0]] * 25)
    table[0, 1:] *= 1_000
    counted = 1_024**2 / 1_000_024
    assert evenness(table) * 25 == pytest.approx(counted)
    assert clustered_share(table).low == pytest.approx(0.025 ** (1 / counted))
    balance = clustered_balance(table)
    assert (balance.low, balance.high) == pytest.approx((2 * 0.025 ** (1 / counted) - 1, 1.0))


def test_one_cluster_that_was_drawn_always_counts() -> None:
    """A row of weight 1,000 beside 1,000 of weight 1: 2·2000²/(1001·1001000) = 0.008 of 2."""
    table = sums([[0.0], [0.0] * 1_000])
    table[0, 2] = table[0, 4] = 1_000
    assert evenness(table) * 2 < 0.01
    assert clustered_share(table).high == pytest.approx(1 - 0.025)


def test_clusters_of_any_size_count_whole_where_rows_weigh_the_same() -> None:
    table = sums([[1.0], [0.0] * 7, [1.0] * 90, [-1.0] * 2])
    assert evenness(table) == 1.0
    assert clustered_balance(table).df == 3
    with raises_naming(Undefined, "no rows", "0/0"):
        evenness(sums([]).reshape(0, 5))


@pytest.mark.parametrize("clusters", [1, 2, 11, 343])
def test_no_event_in_any_cluster_allows_what_the_exact_binomial_interval_does(
    clusters: int,
) -> None:
    found = clustered_share(sums([[0.0] * 4] * clusters))
    exact = binomtest(0, clusters).proportion_ci(0.95, "exact")
    assert found.no_spread
    assert (found.low, found.high) == pytest.approx((0.0, exact.high))
    nothing = clustered_balance(sums([[0.0] * 4] * clusters))
    assert (nothing.low, nothing.high) == pytest.approx((-exact.high, exact.high))


def test_clusters_of_one_value_allow_a_share_of_others_at_either_end() -> None:
    """Of 11 clusters z = 1 − 0.025^(1/11) = 0.28491; 1 between −1 and 1 may be 1 − 2z."""
    assert without_spread(1.0, 11, (-1.0, 1.0)) == pytest.approx((1 - 2 * 0.284914, 1.0), abs=1e-5)
    with raises_naming(Undefined, "spread", "largest value"):
        without_spread(1.0, 11, (0.0, math.inf))


def test_a_balance_of_rises_and_falls_in_single_rows_worked_by_hand() -> None:
    """Three of 20 rise and none falls: the rise has the ends of 3 of 20, the fall is 0 up to
    1 − 0.025^(1/20), and without a spread of the falls nothing is correlated."""
    found = clustered_balance(sums([[1.0]] * 3 + [[0.0]] * 17))
    rise = clustered_share(sums([[1.0]] * 3 + [[0.0]] * 17))
    unseen = 1 - 0.025 ** (1 / 20)
    assert found.low == pytest.approx(0.15 - math.hypot(0.15 - rise.low, unseen))
    assert found.high == pytest.approx(rise.high)


values = st.lists(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=5), min_size=1, max_size=9
)


@settings(max_examples=200)
@given(values)
def test_an_interval_has_a_width_holds_its_estimate_and_is_mirrored_with_its_values(
    rows: list[list[float]],
) -> None:
    found = clustered_balance(sums(rows))
    other = clustered_balance(sums([[-v for v in c] for c in rows]))
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    assert found.low < found.high
    assert (other.low, other.high) == pytest.approx((-found.high, -found.low))
    share = clustered_share(sums([[abs(v) for v in c] for c in rows]))
    assert 0 <= share.low <= share.estimate <= share.high <= 1
    assert share.low < share.high


@pytest.mark.parametrize(("clusters", "rate"), [(11, 0.07), (25, 0.07), (343, 0.005)])
def test_rare_events_in_alike_rows_are_covered_from_both_sides(clusters: int, rate: float) -> None:
    """Beta-binomial with a correlation of .25 within clusters, 600 draws; t misses 20 % here."""
    rng = np.random.default_rng(1)
    chances = rng.beta(rate * 3, (1 - rate) * 3, (600, clusters))
    events = rng.binomial(4, chances)
    four = np.full(clusters, 4.0)
    found = [clustered_share(np.column_stack([four, y, four, y, four])) for y in events]
    assert np.mean([one.high < rate for one in found]) <= 0.045
    assert np.mean([one.low > rate for one in found]) <= 0.045


def test_a_share_of_weights_is_covered_where_a_few_heavy_clusters_decide() -> None:
    """25 clusters of 4 rows, one in ten of them twelve times as heavy, 2,000 draws: with n and G as
    counted one side is missed in more than a tenth."""
    rng, rate, misses = np.random.default_rng(2), 0.1, np.zeros(2)
    heavy = np.where(rng.random((2_000, 25)) < 0.1, 12.0, 1.0)
    events = rng.binomial(4, rng.beta(rate * 3, (1 - rate) * 3, heavy.shape))
    four = np.full(25, 4.0)
    for weight, y in zip(heavy, events, strict=True):
        x = four * weight
        found = clustered_share(np.column_stack([four, y * weight, x, y * weight, x]))
        misses += found.high < rate, found.low > rate
    assert (misses / len(heavy)).max() <= 0.04
