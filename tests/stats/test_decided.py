"""What chance does to people who are decided on one by one: by hand, by second routes."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats.contingency import relative_risk

from bench.simulated import audits
from evenhand.errors import UserError
from evenhand.statistics import decided, selection
from evenhand.statistics.decided import alike, dealt_anew, evened, expected, people_needed
from evenhand.statistics.planning import items_for_two_proportions
from evenhand.statistics.selection import p_among, ratio_interval, smallest_among
from evenhand.statistics.tables import fisher_p


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
    ratio = 14 / 46
    assert expected(people, selected) == pytest.approx([14, 46])
    together = smallest_among(dealt_anew([[100, 100]], [60]), [100, 100])
    within = smallest_among(dealt_anew(people, selected), [100, 100])
    assert within < ratio < together


def test_more_selected_than_there_are_people_is_refused() -> None:
    with pytest.raises(UserError, match="at most all"):
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


def test_decisions_of_a_stratum_that_are_alike_count_for_fewer() -> None:
    """Six strata of ten, all or none selected: 6/5 · 6·25 / (60/4) = 12, times (2.571/1.960)². Of
    five strata nothing is known."""
    people, selected = [[10]] * 6, [[10], [0]] * 3
    assert alike(people, selected)[0] == pytest.approx(12 * (2.5706 / 1.96) ** 2, rel=1e-3)
    assert alike([[10]] * 6, [[5]] * 6)[0] == 1
    assert math.isinf(alike([[10]] * 6, [[10]] * 6)[0])  # all of them: no spread is no certainty
    assert math.isinf(alike(people[:5], selected[:5])[0])


def test_of_two_groups_far_apart_the_interval_is_that_of_a_relative_risk() -> None:
    ends = relative_risk(120, 400, 200, 400).confidence_interval(0.95)
    assert ratio_interval([32, 0], [100, 100], 0, each_alone=True) == (0, 1)  # ahead of nobody
    found = ratio_interval([200, 120], [400, 400], 1, each_alone=True)
    assert found == pytest.approx(tuple(ends), abs=0.02)


def test_an_audit_without_bias_is_seldom_flagged_and_by_four_fifths_nearly_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """14 groups of 200 at a rate of 0.3, as the crossed table of New York City has them."""
    monkeypatch.setattr(decided, "TEST_DRAWS", 2000)
    four_fifths, flagged, median = audits.without_bias(200, 4000)
    assert four_fifths == pytest.approx(0.97, abs=0.02)
    assert flagged <= 0.055
    assert median == pytest.approx(0.69, abs=0.01)


def test_the_interval_of_the_smallest_ratio_holds_the_true_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "DRAWS", 100)
    assert audits.held(audits.TRUE["slope"], 500, 20) >= 0.8


@pytest.mark.parametrize(
    ("selected", "people"), [([9, 10], [10, 10]), ([0, 1], [1, 1]), ([49, 50, 50], [50, 50, 50])]
)
def test_a_group_that_was_selected_whole_is_not_taken_for_sure_to_be(
    selected: list[int], people: list[int]
) -> None:
    """If both rates are 0.95, one of 10 is left out in a third of all audits. So 9 of 10 beside 10
    of 10 excludes no equality."""
    assert ratio_interval(selected, people, each_alone=True)[1] == 1


def test_many_groups_that_are_alike_and_behind_are_not_taken_for_one() -> None:
    """Thirteen of 14 groups are selected at 0.21 and one at 0.33: the smallest ratio is truly
    0.636. Of 13 that are alike the lowest comes out at 0.485 or below in one audit of 13, so that
    a 95 % interval around 0.485 must hold it."""
    groups = np.full(14, 500)
    drawn = np.random.default_rng(1).binomial(groups, [0.21] * 13 + [0.33], (20_000, 14))
    behind = [80, 92, 95, 97, 100, 102, 104, 107, 109, 111, 114, 117, 122]
    seen, true = 80 / 165, 0.21 / 0.33
    assert (drawn.min(axis=1) / drawn.max(axis=1) <= seen).mean() > 0.07
    low, high = ratio_interval([*behind, 165], groups, each_alone=True)
    assert low < seen < true < high


def test_a_plan_for_two_groups_is_near_the_formula_for_two_shares() -> None:
    planned, formula = people_needed(2, 0.3, 0.6), items_for_two_proportions(0.3, 0.18).n
    assert planned == pytest.approx(formula, rel=0.12)
    with pytest.raises(UserError, match="between 0 and 1"):
        people_needed(2, 0.3, 1.0)
