"""Equivalence and non-inferiority, against statsmodels and scipy, for pairs and for clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp
from statsmodels.stats.weightstats import ttost_paired

from evenhand.errors import Undefined, UserError
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.equivalence import (
    non_inferiority,
    non_inferiority_paired,
    tost,
    tost_paired,
)
from evenhand.statistics.proportions import zero_event_upper

RNG = np.random.default_rng(1)
BEFORE = RNG.normal(7, 1, 40)
AFTER = BEFORE + RNG.normal(0.02, 0.3, 40)


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.25, 1.0])
def test_equivalence_agrees_with_statsmodels(margin: float) -> None:
    theirs = ttost_paired(AFTER, BEFORE, -margin, margin)[0]
    assert tost_paired(AFTER, BEFORE, margin).p_value == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.25])
def test_non_inferiority_agrees_with_a_one_sided_t_test(margin: float) -> None:
    theirs = ttest_1samp(AFTER - BEFORE, -margin, alternative="greater").pvalue
    assert non_inferiority_paired(AFTER, BEFORE, margin).p_value == pytest.approx(theirs, rel=1e-9)


@settings(max_examples=60)
@given(
    estimate=st.floats(-1, 1),
    se=st.floats(0.01, 1),
    df=st.integers(1, 400),
    margin=st.floats(0.01, 1),
)
def test_the_claim_holds_exactly_when_the_interval_lies_inside_the_margin(
    estimate: float, se: float, df: int, margin: float
) -> None:
    both = tost(estimate, se, df, margin)
    if min(abs(both.low + margin), abs(both.high - margin)) > 1e-9:
        assert both.equivalent == (-margin < both.low and both.high < margin)
    lower = non_inferiority(estimate, se, df, margin)
    if abs(lower.low + margin) > 1e-9:
        assert lower.not_inferior == (lower.low > -margin)
    mirrored = tost(-estimate, se, df, margin)
    assert mirrored.p_value == pytest.approx(both.p_value)


def test_a_clustered_estimate_claims_less_than_its_rows_would() -> None:
    keys = np.repeat(np.arange(20), 10)
    rng = np.random.default_rng(2)
    change = 0.1 * rng.normal(size=20)[keys] + 0.1 * rng.normal(size=200)
    found = clustered_mean(change, keys)
    honest = non_inferiority(found.estimate, found.se, found.df, 0.05)
    naive = non_inferiority_paired(change, np.zeros(200), 0.05)
    assert honest.p_value > naive.p_value
    assert honest.low == pytest.approx(found.low)  # alpha 0.025 is the 95 % interval's lower end


def test_a_difference_that_is_not_significant_is_not_thereby_equivalent() -> None:
    found = tost_paired([7, 8, 6, 9], [8, 6, 7, 8], 0.25)
    assert ttest_1samp([-1, 2, -1, 1], 0).pvalue > 0.5
    assert not found.equivalent


def test_no_spread_is_undefined_and_names_the_bound_that_answers_instead() -> None:
    with pytest.raises(Undefined, match="zero_event_upper"):
        tost_paired([1, 2, 3], [1, 2, 3], 0.1)
    with pytest.raises(Undefined, match="zero_event_upper"):
        non_inferiority(0.0, 0.0, 342, 0.02)
    assert zero_event_upper(343) < 0.02 < zero_event_upper(30)  # enough templates, and too few


@pytest.mark.parametrize(
    ("se", "df", "margin"), [(0.1, 9, 0), (0.1, 9, -0.02), (-0.1, 9, 0.1), (0.1, 0, 0.1)]
)
def test_a_margin_is_a_positive_distance_and_an_estimate_has_a_spread(
    se: float, df: float, margin: float
) -> None:
    with pytest.raises(UserError):
        tost(0.0, se, df, margin)
    with pytest.raises(UserError):
        non_inferiority(0.0, se, df, margin)
