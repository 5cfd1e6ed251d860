"""How long a sequential run takes: bets by hand, the intervals as a second route, and draws."""

import math

import numpy as np
import pytest

from evenhand.core.errors import UserError
from evenhand.statistics.planning import Rule, stopped, stopping_time
from evenhand.statistics.sequences import anytime_mean
from tests.errors import raises_naming

SHARES = {1.0: 16 / 31, 0.5: 8 / 31, 0.25: 4 / 31, 0.125: 2 / 31, 0.0625: 1 / 31}
RULE = Rule(margin=0.2, ends=(-1.0, 1.0), block=5)


def test_a_run_without_a_change_passes_at_the_first_look_after_its_bets_have_won_forty_fold() -> (
    None
):
    """Every change is 0. The bet that it is below 0.2 has x = 0.5 and m = 0.4 on a scale from 0 to
    1, so that a share s wins 1 + s/4 a cluster; the bet that it is above 0 wins nothing."""
    won = [sum(start * (1 + s / 4) ** n for s, start in SHARES.items()) for n in range(60)]
    needed = next(n for n in range(60) if won[n] >= 40)
    assert needed == 20
    asked, passed, failed = stopped(np.zeros((1, 60)), RULE)
    assert (asked[0], passed[0], failed[0]) == (20, True, False)
    later = Rule(margin=0.2, ends=(-1.0, 1.0), block=7)
    assert stopped(np.zeros((1, 60)), later)[0][0] == 21
    asked, passed, failed = stopped(np.zeros((1, 12)), RULE)  # never decided: all are asked
    assert (asked[0], passed[0], failed[0]) == (12, False, False)


@pytest.mark.parametrize("mean", [-0.3, 0.2, 0.4])
def test_it_stops_where_the_interval_of_a_look_first_decides(mean: float) -> None:
    rng = np.random.default_rng(3)
    values = np.clip(rng.normal(mean, 0.3, (3, 60)), -1, 1)
    asked, passed, failed = stopped(values, RULE)
    for row, end, kept, worse in zip(values, asked, passed, failed, strict=True):
        looks = range(5, 61, 5)
        found = {n: anytime_mean(row[:n]) for n in looks}
        first = next((n for n in looks if found[n].high <= 0.2 or found[n].low > 0), 60)
        assert end == first
        assert kept == (found[first].high <= 0.2)
        assert worse == (found[first].low > 0 and not kept)


def test_what_is_near_asks_all_and_what_is_far_a_few_and_no_run_asks_more_than_there_are() -> None:
    rule = Rule(margin=0.05, ends=(-2.0, 2.0), block=10)
    none, one, four = (stopping_time(k * 0.05, 0.35, 150, rule, runs=100) for k in (0, 1, 4))
    assert four.share < one.share <= 1
    assert four.failed == 1.0
    assert none.failed + one.passed <= 0.06  # wrong at 2.5 % each, and 100 runs
    assert none.decided <= none.fixed + 0.05  # it decides no more than a test of all would


def test_with_the_spread_of_a_plan_the_fixed_test_has_the_power_of_the_plan() -> None:
    """2.80 standard errors are shown 4 times in 5: 0.05 with sd 0.5 takes 785 clusters."""
    clusters = math.ceil((2.80 * 0.5 / 0.05) ** 2)
    found = stopping_time(0.05, 0.5, clusters, Rule(margin=0.05, ends=(-2.0, 2.0), block=20))
    assert found.fixed == pytest.approx(0.8, abs=0.06)


def test_a_spread_that_the_ends_do_not_allow_is_refused() -> None:
    with raises_naming(UserError, "-1 and 1", "mean of 0", "spread of 1.5"):
        stopping_time(0.0, 1.5, 20, RULE)


def test_18_clusters_with_far_ends_never_decide_what_a_fixed_test_does() -> None:
    rule = Rule(margin=0.3, ends=(-2.0, 2.0), block=10, pass_error=0.0125, fail_error=0.025 / 3)
    found = [stopping_time(k * 0.3, 0.36, 18, rule) for k in (0, 1, 2)]
    assert [one.decided for one in found] == [0, 0, 0]
    assert found[2].fixed > 0.95
