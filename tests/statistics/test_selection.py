"""Rates of groups against all others: by hand, by a second route, and by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chisquare, hypergeom, nchypergeom_fisher
from scipy.stats.contingency import relative_risk

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.selection import (
    ALPHA,
    Chance,
    FamilyOfTests,
    FilledSelections,
    Grouped,
    Selections,
    impact_ratios,
    levelled,
    smallest_p,
    uneven_p,
)
from tests.errors import raises_naming


def test_an_impact_ratio_is_a_rate_over_the_best_rate() -> None:
    """6/20 = 0.3, 9/60 = 0.15 and 0/10: half of the best, and none."""
    assert impact_ratios([6, 9, 0], [20, 60, 10]) == pytest.approx([1, 0.5, 0])


def test_nobody_selected_has_no_ratio_and_one_group_is_refused() -> None:
    with raises_naming(Undefined, "nobody"):
        impact_ratios([0, 0], [5, 5])
    with raises_naming(UserError, "two groups"):
        impact_ratios([3], [5])
    with raises_naming(UserError, "two groups"):
        uneven_p([3, 1], [5, 0])


def test_the_test_of_unevenness_is_pearsons_and_exact_where_that_is_rough() -> None:
    """All ten first places to one of two groups: 2/1024. Of 400 in four groups: chi-square's."""
    assert uneven_p([10, 0], [1, 1]) == pytest.approx(2 / 1024, abs=0.002)
    assert uneven_p([120, 85, 95, 100], [1, 1, 1, 1]) == pytest.approx(
        chisquare([120, 85, 95, 100]).pvalue, abs=0.015
    )


def test_a_dealing_is_hypergeometric_and_with_other_odds_fishers_noncentral_one() -> None:
    dealt = Chance.dealt(20, 20, 13)
    assert dealt.at_most(3) == pytest.approx(hypergeom.cdf(3, 40, 20, 13))
    assert dealt.at_least(10) == pytest.approx(hypergeom.sf(9, 40, 20, 13))
    odds = np.log(0.4)
    assert dealt.at_most(3, odds) == pytest.approx(nchypergeom_fisher.cdf(3, 40, 20, 13, 0.4))
    assert dealt.mean(odds) == pytest.approx(nchypergeom_fisher.mean(40, 20, 13, 0.4))
    upper = dealt.odds_up_to(3, 0.025)
    assert nchypergeom_fisher.cdf(3, 40, 20, 13, np.exp(upper)) == pytest.approx(0.025)


@pytest.mark.parametrize("near", [-1.0, 0.0, 2.0])
def test_a_dealing_within_strata_is_the_sum_of_their_counts(near: float) -> None:
    """Two strata, convolved by hand; around which odds they are summed makes no difference."""
    found = Chance.dealt([9, 4], [5, 12], [6, 5], near)
    by_hand = np.convolve(hypergeom.pmf(np.arange(1, 7), 14, 9, 6),
                          hypergeom.pmf(np.arange(5), 16, 4, 5))  # fmt: skip
    assert found.start == 1
    assert found.weights() == pytest.approx(by_hand)


def test_one_winner_of_several_is_binomial() -> None:
    assert Chance.drawn(30, 0.2).at_most(2) == pytest.approx(binom.cdf(2, 30, 0.2))


def _two_groups(x: int, n: int, y: int, m: int) -> Selections:
    total = x + y
    found = FilledSelections(
        x, total, total * n / (n + m), (n + m) / (n * m), Chance.dealt(n, m, total)
    )
    return Selections(found, found, found)


def _alone(level: float = ALPHA) -> FamilyOfTests:
    """A family of one test: its smallest p-values are spread evenly."""
    return FamilyOfTests((np.linspace(0, 1, 9999) * ALPHA / level,))


def test_of_two_groups_the_interval_is_near_that_of_a_relative_risk() -> None:
    found = _alone().contrast(_two_groups(120, 400, 200, 400))
    ends = relative_risk(120, 400, 200, 400).confidence_interval(0.95)
    assert (found.ratio, found.difference) == pytest.approx((0.6, -0.2))
    assert (found.ratio_low, found.ratio_high) == pytest.approx(tuple(ends), abs=0.02)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 60), st.data(), st.floats(0.05, 1))
def test_p_interval_and_outcome_agree_at_every_level(
    n: int, m: int, data: st.DataObject, share: float
) -> None:
    x, y = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    found = _alone(ALPHA / share).contrast(_two_groups(x, n, y, m)) if x + y else None
    if found is None or not np.isfinite(found.difference):
        return
    excluded = found.difference_low > 0 or found.difference_high < 0
    assert excluded == found.shown
    assert (found.ratio_low > 1 or found.ratio_high < 1) == found.shown
    assert found.difference_low - 1e-9 <= found.difference <= found.difference_high + 1e-9


def test_the_interval_holds_the_true_ratio_in_95_percent() -> None:
    """Two groups of 60 and 200 at 0.24 and 0.4, 400 audits: exact tests are a little wide."""
    rng, held = np.random.default_rng(3), 0
    for x, y in zip(rng.binomial(60, 0.24, 400), rng.binomial(200, 0.4, 400), strict=True):
        found = _alone().contrast(_two_groups(int(x), 60, int(y), 200))
        held += found.ratio_low <= 0.6 <= found.ratio_high
    assert held >= 0.94 * 400


def test_a_tiny_group_costs_the_others_next_to_nothing() -> None:
    """Of two people no number selected is as unlikely as the level. What is left is chi-square,
    which the third group makes another test; Bonferroni would take a third."""
    rng = np.random.default_rng(1)
    people = np.array([500, 500, 2])
    drawn = rng.multivariate_hypergeometric(people, 100, 4000)
    chances = [Chance.dealt(n, 1002 - n, 100) for n in people]
    both, alone = (
        FamilyOfTests(
            (smallest_p([Grouped(drawn[:, :k], chances[:k], people[:k] * 100 / 1002)]),)
        ).level
        for k in (3, 2)
    )
    assert both > 0.8 * alone


def test_a_level_and_an_adjusted_p_say_the_same() -> None:
    family = FamilyOfTests((np.linspace(0, 0.5, 999), np.linspace(0, 0.8, 999)))
    for p in (0.001, 0.02, 0.0239, 0.0241, 0.03, 0.06):
        assert (family.adjusted(p) <= ALPHA) == (p <= family.level)


def test_what_is_detectable_is_shown_4_times_in_5() -> None:
    """A group of 300 beside 900 at 0.3: drawn at the ratio that the audit calls detectable."""
    design = _two_groups(90, 300, 270, 900)
    ratio = _alone().contrast(design).detectable
    assert ratio is not None
    rng = np.random.default_rng(2)
    shown = 0
    for x, y in zip(rng.binomial(300, 0.3 * ratio, 300), rng.binomial(900, 0.3, 300), strict=True):
        found = _alone().contrast(_two_groups(int(x), 300, int(y), 900))
        shown += found.shown and found.ratio < 1
    assert 0.72 <= shown / 300 <= 0.88


def test_missing_ones_are_filled_in_so_that_groups_are_as_alike_as_can_be() -> None:
    """Three more of 5, 1 and 0: to the third, then to the second and the third, both with 1."""
    assert levelled([5, 1, 0], [1, 1, 1], 3).tolist() == [5, 2, 2]
    assert levelled([4, 4], [3, 1], 2).tolist() == [6, 4]


def test_no_other_way_to_fill_in_has_a_smaller_chi_square() -> None:
    """One more goes to neither of two even groups by a rare third, of which 0.05 is expected: with
    it there chi-square would be 18, not 0.1. And all ways to place three, one by one."""
    assert levelled([5, 5, 0], [10, 10, 0.1], 1).tolist() == [6, 5, 0]
    seen, expected = np.array([4, 1, 0]), np.array([5, 2, 0.4])
    ways = [seen + np.array([a, b, 3 - a - b]) for a in range(4) for b in range(4 - a)]
    least = min(((way**2) / expected).sum() for way in ways)
    assert (levelled(seen, expected, 3) ** 2 / expected).sum() == pytest.approx(least)
