"""What chance does to people who are decided on one by one: by hand, by second routes."""

import itertools

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from bench.simulated import audits
from evenhand.core.errors import UserError
from evenhand.statistics.selection import (
    Chance,
    dealt_anew,
    evened,
    expected,
    p_among,
    people_needed,
)
from evenhand.statistics.tables import fisher_p
from tests.errors import raises_naming


def test_outcomes_dealt_anew_are_hypergeometric() -> None:
    """Five of ten, two groups of five: all five in the first in 1 of 252 dealings, and four of them
    in 25 of 252."""
    drawn = dealt_anew([[5, 5]], [5])
    assert (drawn.sum(axis=1) == 5).all()
    assert (drawn[:, 0] == 5).mean() == pytest.approx(1 / 252, abs=0.002)
    assert (drawn[:, 0] == 4).mean() == pytest.approx(25 / 252, abs=0.01)


def test_of_two_groups_the_test_is_fishers() -> None:
    people, selected = [[20, 20]], [13]
    p = p_among([10, 3], expected(people, selected), dealt_anew(people, selected))
    assert p == pytest.approx(fisher_p([[10, 10], [3, 17]]), abs=0.008)


def test_a_group_that_applied_where_few_are_selected_is_not_behind_within_strata() -> None:
    """Nine women and one man of 90 and 10 are selected for one job, 5 and 45 of 10 and 90 for the
    other: the same rates in each, and a ratio of 14/46 in all."""
    people, selected = [[90, 10], [10, 90]], [10, 50]
    assert expected(people, selected) == pytest.approx([14, 46])
    assert Chance.dealt(100, 100, 60).at_most(14) < 0.001
    assert Chance.dealt([90, 10], [10, 90], selected).at_most(14) > 0.4


def test_more_selected_than_there_are_people_is_refused() -> None:
    with raises_naming(UserError, "selected", "stratum"):
        dealt_anew([[3, 4]], [8])


def _chi2(people: np.ndarray, selected: np.ndarray) -> float:
    share = selected.sum() / people.sum()
    return float(((selected - people * share) ** 2 / (people * share * (1 - share))).sum())


def test_no_other_way_to_fill_in_outcomes_is_more_even() -> None:
    """All ways to fill in 2, 1 and 3 missing outcomes, one by one."""
    people, seen, missing = np.array([12, 9, 20]), np.array([3, 4, 2]), np.array([2, 1, 3])
    ways = itertools.product(*(range(m + 1) for m in missing))
    least = min(_chi2(people, seen + np.array(way)) for way in ways)
    assert _chi2(people, evened(people, seen, missing)) == pytest.approx(least)
    assert evened([4, 4], [1, 2], [0, 0]).tolist() == [1, 2]


def test_an_audit_without_bias_is_seldom_flagged_and_by_four_fifths_nearly_always() -> None:
    """14 groups of 200 at a rate of 0.3, as the crossed table of New York City has them."""
    four_fifths, flagged, median = audits.without_bias(200, 100)
    assert four_fifths == pytest.approx(0.97, abs=0.05)
    assert flagged <= 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5
    assert median == pytest.approx(0.69, abs=0.02)


def test_a_planned_size_has_the_power_that_it_is_planned_for() -> None:
    size = people_needed(3, 0.4, 0.7)
    assert audits.power(3, 0.4, 0.7, size, 200) == pytest.approx(0.8, abs=0.08)


def test_a_plan_for_two_groups_is_near_the_formula_for_two_shares() -> None:
    effect = proportion_effectsize(0.3, 0.18)
    formula = NormalIndPower().solve_power(effect, alpha=0.05, power=0.8)
    assert people_needed(2, 0.3, 0.6) == pytest.approx(formula, rel=0.15)
    with raises_naming(UserError, "two groups", "0 and 1"):
        people_needed(2, 0.3, 1.0)
