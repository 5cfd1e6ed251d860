"""Rates and their ratios to the best group: by hand, by a second route, and by simulation."""

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from evenhand.errors import Undefined, UserError
from evenhand.statistics import selection
from evenhand.statistics.proportions import wilson
from evenhand.statistics.selection import (
    impact_ratios,
    levelled,
    ratio_interval,
    smallest_by_chance,
    uneven_p,
)


def test_a_ratio_is_a_rate_over_the_best_rate() -> None:
    """6/20 = 0.3, 9/60 = 0.15 and 0/10: half of the best, and none."""
    assert impact_ratios([6, 9, 0], [20, 60, 10]) == pytest.approx([1, 0.5, 0])


def test_nobody_selected_has_no_ratio_and_one_group_is_refused() -> None:
    with pytest.raises(Undefined, match="nobody"):
        impact_ratios([0, 0], [5, 5])
    with pytest.raises(UserError, match="two groups"):
        impact_ratios([3], [5])
    with pytest.raises(UserError, match="two groups"):
        uneven_p([3, 1], [5, 0])


def test_the_test_of_unevenness_is_pearsons_and_exact_where_that_is_rough() -> None:
    """All ten first places to one of two groups: 2/1024. Of 400 in four groups: chi-square's."""
    assert uneven_p([10, 0], [1, 1]) == pytest.approx(2 / 1024, abs=0.002)
    assert uneven_p([120, 85, 95, 100], [1, 1, 1, 1]) == pytest.approx(
        chisquare([120, 85, 95, 100]).pvalue, abs=0.015
    )


def test_the_smallest_ratio_by_chance_worked_by_hand() -> None:
    """Ten first places, two equal groups: a ratio of 0 or 1/9 comes in 2·(1 + 10)/1024 = 2.1 % of
    audits, and one of 2/8 or less in 10.9 %. So the 5 % point is 1/4."""
    assert smallest_by_chance(10, [1, 1], [10, 10]) == pytest.approx(1 / 4)
    below = 2 * binom.cdf(1, 10, 0.5)
    assert below == pytest.approx(22 / 1024)


@pytest.mark.parametrize(("n", "four_fifths"), [(500, 0.92), (1000, 0.64), (2000, 0.20)])
def test_an_audit_without_bias_is_flagged_in_5_percent_and_by_four_fifths_in_most(
    n: int, four_fifths: float
) -> None:
    drawn = np.random.default_rng(7).multinomial(n, np.full(8, 1 / 8), 4000)
    smallest = drawn.min(axis=1) / drawn.max(axis=1)
    assert (smallest < 0.8).mean() == pytest.approx(four_fifths, abs=0.03)
    assert (smallest < smallest_by_chance(n, np.ones(8), np.full(8, n))).mean() <= 0.055


def test_of_two_groups_the_interval_is_that_of_one_share() -> None:
    """Where the second of two groups is far behind, p/(1 − p) at the ends of Wilson's interval."""
    share = wilson(399, 989)
    ends = share.low / (1 - share.low), share.high / (1 - share.high)
    assert ratio_interval([590, 399], [989, 989], 1) == pytest.approx(ends, abs=0.015)


@pytest.mark.parametrize("true", [[1.0] * 8, [1.0] * 7 + [0.7]])
def test_the_interval_of_the_smallest_ratio_holds_the_true_one(
    true: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """92 to 99 % in the whole simulation (`bench/simulated/selections.py`), here in 80 audits.
    Resampling the counts holds the truth in none of them where the groups are alike."""
    monkeypatch.setattr(selection, "DRAWS", 200)
    rng, n, held, resampled = np.random.default_rng(3), 1000, 0, 0
    for seed in range(80):
        seen = rng.multinomial(n, np.array(true) / sum(true))
        low, high = ratio_interval(seen, np.full(8, n), seed=seed)
        held += low <= min(true) <= high
        again = rng.multinomial(n, seen / n, 200)
        resampled += np.quantile(again.min(axis=1) / again.max(axis=1), 0.975) >= min(true)
    assert 72 <= held <= 80
    assert resampled <= 60
    assert min(true) < 1 or resampled == 0


def test_the_group_that_leads_is_as_good_as_the_best_unless_the_others_are_near() -> None:
    """Of 40 to 0 the leader is surely the best; of 51 to 49 its true ratio may be 0.7."""
    assert ratio_interval([40, 0, 0], [40, 40, 40], 0) == pytest.approx((1, 1), abs=0.01)
    low, high = ratio_interval([51, 49], [100, 100], 0)
    assert 0.6 < low < 0.8
    assert high == 1


def test_a_group_that_is_never_first_may_still_have_some_ratio() -> None:
    low, high = ratio_interval([20, 20, 0], [40, 40, 40], 2)
    assert low == 0
    assert 0.1 < high < 0.4


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
