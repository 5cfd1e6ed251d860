"""Claims about one run's groups where clusters are skewed: most slightly below 0, few far above."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.simulated.scenarios import group_without_bias
from evenhand.findings.estimates import Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Share
from evenhand.findings.worst_case import (
    WorstCaseRun,
    WorstCaseSums,
    defended,
    interval,
    p_of_bias,
    p_of_small_bias,
)
from evenhand.statistics.bounded import lowest_mean, p_mean_above
from evenhand.statistics.multiplicity import holm, holm_errors

import polars as pl  # isort: skip

SCORE = Measure(name="s", label="s", statistic=Share(pl.col("s")), better="zero", within=(-1, 1))
SUMS = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(0, 3), st.integers(0, 2)).map(
        lambda one: (float(one[0]), float(abs(one[0]) + one[1] + (not any(one[:2]))), float(one[2]))
    ),
    min_size=2,
    max_size=15,
)


def filled(sums: list[tuple[float, float, float]]) -> WorstCaseSums:
    y, n, missing = np.array(sums).T
    return WorstCaseSums.of(SCORE, y, n, missing)


@pytest.mark.parametrize("clusters", [6, 8, 12, 16, 25])
@pytest.mark.parametrize("usual", [-0.10, -0.25])
def test_no_bias_is_called_a_bias_in_at_most_5_of_100_groups(clusters: int, usual: float) -> None:
    """Sign flips called it one in 55 of 100 with 6 clusters and in 9 with 25."""
    rng = np.random.default_rng(1)
    drawn = [group_without_bias(rng, clusters, usual, 1.0) for _ in range(200)]
    assert np.mean([2 * min(pair) <= 0.05 for pair in drawn]) <= 0.05


def test_a_bias_that_is_there_is_shown() -> None:
    """150 templates at a mean of 0.12 with a spread of 0.37: about 95 of 100, as with sign flips
    (96 of 100)."""
    rng = np.random.default_rng(2)
    shown = [p_mean_above(rng.normal(0.12, 0.37, 150).clip(-1, 1), -1.0) for _ in range(60)]
    assert np.mean(np.array(shown) <= 0.025) > 0.85


def test_the_p_value_is_that_of_weights_drawn_from_the_simplex() -> None:
    rng = np.random.default_rng(3)
    values = rng.uniform(-0.5, 1, 12)
    weights = rng.standard_exponential((100_000, 13))
    drawn = float((weights @ np.append(values, -1.0) <= 0).mean())
    assert p_mean_above(values, -1.0) == pytest.approx(drawn, abs=0.004)
    assert p_mean_above([1.0] * 6, -1.0) == pytest.approx(0.5**6)
    assert p_mean_above([0.01] * 343, -1.0) == pytest.approx(1.01**-343, rel=1e-5)
    assert p_mean_above([-0.1, 0.0], -1.0) == 1


def test_the_lower_end_of_zeros_and_ones_is_that_of_clopper_and_pearson() -> None:
    """3 of 40: the share at which P(X ≥ 3) is 0.025 is 0.0157 (scipy, beta quantile)."""
    ones = np.array([1.0] * 3 + [0.0] * 37)
    end = lowest_mean(lambda m: p_mean_above(ones - m, -m), 0.0, ones.mean(), 0.025)
    assert end == pytest.approx(0.01574, abs=1e-4)


@settings(max_examples=80, deadline=None)
@given(SUMS, st.sampled_from([0.05, 0.01, 0.05 / 65]))
def test_an_interval_holds_no_bias_exactly_where_none_is_shown(
    sums: list[tuple[float, float, float]], error: float
) -> None:
    found = filled(sums)
    y, n, _ = np.array(sums).T
    ways = [WorstCaseRun(0, found, y)]
    before = Estimate(name="s", value=float(y.sum() / n.sum()))
    one = defended(before, SCORE, ways, 0.1, error)
    assert one.p is not None
    assert one.low is not None
    assert one.high is not None
    assert (one.p <= error) == (not one.low <= 0 <= one.high)
    assert one.low <= float(found.low.sum() / found.rows.sum()) + 1e-9
    assert one.high >= float(found.high.sum() / found.rows.sum()) - 1e-9


@settings(max_examples=30, deadline=None)
@given(SUMS, st.data())
def test_one_more_missing_answer_never_helps_a_claim(
    sums: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(sums) - 1))
    y, n, missing = sums[place]
    more = [*sums[:place], (y, n, missing + 1), *sums[place + 1 :]]
    assert p_of_bias(SCORE, filled(more)) >= p_of_bias(SCORE, filled(sums)) - 1e-9
    assert p_of_small_bias(SCORE, filled(more), 0.2) >= (
        p_of_small_bias(SCORE, filled(sums), 0.2) - 1e-9
    )
    (low, high), (less, most) = (interval(SCORE, filled(one), 0.05) for one in (more, sums))
    assert low <= less + 1e-5
    assert high >= most - 1e-5


@settings(max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_rejects_exactly_what_is_at_most_its_own_error(p_values: list[float]) -> None:
    after, errors = holm(p_values), holm_errors(p_values, 0.05)
    for p, adjusted, error in zip(p_values, after, errors, strict=True):
        if abs(adjusted - 0.05) > 1e-12:
            assert (p <= error) == (adjusted <= 0.05)
    assert all(0.05 / len(p_values) <= error <= 0.05 for error in errors)
