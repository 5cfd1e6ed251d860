"""The planner: round trips, a second implementation, simulation, and the protocol's own numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.planning import (
    design_effect,
    detectable_change,
    items_needed,
    rounded_up,
)


def test_the_planned_number_of_clustered_items_reaches_its_power() -> None:
    clusters = rounded_up(items_needed(0.25, 1.0, cluster_size=4, icc=0.3) / 4)
    keys = np.repeat(np.arange(clusters), 4)
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        level = np.sqrt(0.3) * rng.normal(size=clusters)[keys]
        found = clustered_mean(0.25 + level + np.sqrt(0.7) * rng.normal(size=keys.size), keys)
        hits += found.low > 0 or found.high < 0
    assert hits / 400 == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("clusters", [3, 11, 25, 343])
@pytest.mark.parametrize("family", [1, 3, 20])
def test_the_power_of_one_test_agrees_with_statsmodels(clusters: int, family: int) -> None:
    theirs = TTestPower().power(0.3, clusters, 0.05 / family / 2, alternative="larger")
    if theirs > 0.06:  # detectable_change is the inverse, for more power than chance gives
        seen = detectable_change(clusters**-0.5, clusters - 1, family=family, power=theirs)
        assert seen == pytest.approx(0.3, rel=1e-7)


@pytest.mark.parametrize("clusters", [11, 25])
@pytest.mark.parametrize(("family", "together"), [(3, 1), (2, 2), (20, 2), (6, 3)])
def test_the_stated_power_is_the_simulated_one_after_holm(
    clusters: int, family: int, together: int
) -> None:
    """A run against `together` others, all apart by what is said to be seen 4 times in 5."""
    change = detectable_change(1.0, clusters - 1, family=family, together=together)
    rng, draws = np.random.default_rng(clusters + family), 3_000
    ours, others = (rng.normal(size=(n, draws, clusters)) for n in (1, together))
    values = (ours - others) * (clusters / 2) ** 0.5 + change
    t = values.mean(2) / values.std(2, ddof=1) * clusters**0.5
    raw = np.vstack(
        [2 * stats.t.sf(np.abs(t), clusters - 1), rng.random((family - together, draws))]
    )
    shown = [all(p <= 0.05 for p in holm(column)[:together]) for column in raw.T]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)


def test_what_is_seen_four_times_in_five_is_further_away_in_a_family() -> None:
    assert detectable_change(0.1, 1e9) == pytest.approx(0.2802, abs=1e-4)  # 1.960 + 0.842
    assert detectable_change(0.1, 1e9, family=3) == pytest.approx(0.3236, abs=1e-4)  # 2.394 + 0.842
    assert detectable_change(1.0, 342, family=3) == pytest.approx(3.249, abs=1e-3)
    assert detectable_change(1.0, 10, family=20, together=2) > 5.4


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
    assert rounded_up(items_needed(mde + 0.006, sd, cluster_size, icc)) <= n
    assert rounded_up(items_needed(mde - 0.006, sd, cluster_size, icc)) >= n


@settings(max_examples=60)
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
    mde = (items_needed(1.0, sd, size, icc, power=power) / n) ** 0.5
    plan = items_needed(mde, sd, size, icc, power=power)
    assert rounded_up(plan) == n
    assert items_needed(-mde, sd, size, icc, power=power) == plan


def test_likeness_within_clusters_costs_items_and_contrast_saves_them() -> None:
    assert design_effect(22, 0.45) == pytest.approx(10.45)
    assert design_effect(2, -0.5) == 0.5
    assert items_needed(0.1, 1, 4, 0.3) > items_needed(0.1, 1, 4, 0.0)


def test_a_difference_of_zero_needs_no_finite_number_of_items() -> None:
    with pytest.raises(Undefined):
        items_needed(0, 1)
    with pytest.raises(Undefined):
        design_effect(3, -0.5)


def test_a_plan_that_makes_no_sense_is_a_user_error() -> None:
    with pytest.raises(UserError):
        detectable_change(0.1, 10, family=1, together=2)
    with pytest.raises(UserError):
        design_effect(0.5, 0.1)
    with pytest.raises(UserError):
        design_effect(2, 1.1)
    with pytest.raises(UserError):
        items_needed(0.1, -1)
    with pytest.raises(UserError):
        items_needed(0.1, 1, power=1)
