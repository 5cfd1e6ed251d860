"""The planner: round trips, a second implementation, simulation, and the protocol's own numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from evenhand.errors import Undefined, UserError
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.paired import mcnemar_p
from evenhand.statistics.planning import (
    design_effect,
    detectable_mean,
    items_for_two_proportions,
    items_needed,
    pairs_for_mcnemar,
)


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.6), (0.85, 0.9), (0.02, 0.01), (1, 0.9)])
def test_two_independent_shares_agree_with_statsmodels(first: float, second: float) -> None:
    effect = proportion_effectsize(first, second)
    theirs = NormalIndPower().solve_power(abs(effect), alpha=0.05, power=0.8)
    found = items_for_two_proportions(first, second)
    assert found.exact == pytest.approx(theirs, rel=1e-4)
    assert found == items_for_two_proportions(second, first)


def test_the_planned_number_of_pairs_reaches_its_power() -> None:
    rng, n = np.random.default_rng(1), pairs_for_mcnemar(0.10, 0.05).n
    drawn = rng.multinomial(n, [0.10, 0.05, 0.85], size=2_000)
    known = {tuple(row): mcnemar_p(int(row[0]), int(row[1])) for row in drawn[:, :2]}
    reached = np.mean([known[tuple(row)] <= 0.05 for row in drawn[:, :2]])
    assert reached == pytest.approx(0.8, abs=0.05)  # the exact test is a little conservative


def test_the_planned_number_of_clustered_items_reaches_its_power() -> None:
    plan = items_needed(0.25, 1.0, cluster_size=4, icc=0.3)
    keys = np.repeat(np.arange(plan.clusters), 4)
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        level = np.sqrt(0.3) * rng.normal(size=plan.clusters)[keys]
        found = clustered_mean(0.25 + level + np.sqrt(0.7) * rng.normal(size=keys.size), keys)
        hits += found.low > 0 or found.high < 0
    assert hits / 400 == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(
    ("n", "sd", "cluster_size", "icc", "mde"),
    [
        pytest.param(686, 0.62, 2, 0.1, 0.07, id="343-templates-in-pairs"),
        pytest.param(55, 0.62, 1, 0.0, 0.23, id="mabrf"),
        pytest.param(550, 0.62, 1, 0.1, 0.08, id="stardtox"),
    ],
)
def test_the_numbers_quoted_in_the_protocol_come_out(
    n: int, sd: float, cluster_size: int, icc: float, mde: float
) -> None:
    found = detectable_mean(n, sd, cluster_size, icc)
    assert found.mde == pytest.approx(mde, abs=0.006)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 100_000),
    sd=st.floats(0.05, 5),
    size=st.integers(1, 200),
    icc=st.floats(0, 0.9),
    power=st.floats(0.5, 0.99),
)
def test_items_needed_is_the_inverse_of_what_they_can_show(
    n: int, sd: float, size: int, icc: float, power: float
) -> None:
    shown = detectable_mean(n, sd, size, icc, power=power)
    plan = items_needed(shown.mde, sd, size, icc, power=power)
    assert plan.n == n
    assert (plan.clusters - 1) * size < n <= plan.clusters * size
    assert items_needed(-shown.mde, sd, size, icc, power=power) == plan


def test_likeness_within_clusters_costs_items_and_contrast_saves_them() -> None:
    assert design_effect(22, 0.45) == pytest.approx(10.45)
    assert design_effect(2, -0.5) == 0.5
    assert items_needed(0.1, 1, 4, 0.3).n > items_needed(0.1, 1, 4, 0.0).n


def test_a_difference_of_zero_needs_no_finite_number_of_items() -> None:
    with pytest.raises(Undefined):
        items_for_two_proportions(0.4, 0.4)
    with pytest.raises(Undefined):
        pairs_for_mcnemar(0.1, 0.1)
    with pytest.raises(Undefined):
        items_needed(0, 1)
    with pytest.raises(Undefined):
        detectable_mean(0, 1)
    with pytest.raises(Undefined):
        design_effect(3, -0.5)


def test_a_plan_that_makes_no_sense_is_a_user_error() -> None:
    with pytest.raises(UserError):
        pairs_for_mcnemar(0.7, 0.6)
    with pytest.raises(UserError):
        design_effect(0.5, 0.1)
    with pytest.raises(UserError):
        design_effect(2, 1.1)
    with pytest.raises(UserError):
        items_needed(0.1, -1)
    with pytest.raises(UserError):
        items_needed(0.1, 1, power=1)
