"""Intervals that hold at every look: bets worked by hand, a finer route, and draws."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.conclusions import Outcome
from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.clusters import naive_mean
from evenhand.statistics.sequences import (
    AnytimeInterval,
    anytime_mean,
    log_wealth,
)
from tests.errors import raises_naming

SHARES = {1.0: 16 / 31, 0.5: 8 / 31, 0.25: 4 / 31, 0.125: 2 / 31, 0.0625: 1 / 31}
LIMIT = math.log(40)  # 95 %, half of the error on each side


def by_hand(values: list[float], mean: float, of: int | None = None) -> float:
    """The wealth after the last value, of values from 0 to 1, bet by bet."""
    total = 0.0
    for share, start in SHARES.items():
        money = start
        for number, value in enumerate(values):
            rest = mean if of is None else (of * mean - sum(values[:number])) / (of - number)
            money = money * (1 - share) + money * share * value / rest
        total += money
    return total


def test_wealth_is_what_the_bets_give_one_by_one() -> None:
    assert by_hand([1.0], 0.5) == pytest.approx(
        (16 * 2 + 8 * 1.5 + 4 * 1.25 + 2 * 1.125 + 1.0625) / 31
    )
    values = [0.9, 0.4, 0.7, 1.0]
    for of in (None, 6):
        found = log_wealth(values, 0.6, within=(0, 1), of=of)
        expected = [math.log(by_hand(values[:n], 0.6, of)) for n in range(1, 5)]
        assert found == pytest.approx(expected)


def test_nobody_gains_on_average_where_the_mean_is_as_said() -> None:
    """Over all 2⁶ runs of coins, and over all orders of six clusters without replacement."""
    coins = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    assert np.exp(log_wealth(coins, 0.5, within=(0, 1))).mean(axis=0) == pytest.approx(np.ones(6))
    cards = np.array(list(itertools.permutations([0.1, 0.3, 0.35, 0.6, 0.8, 1.0])))
    won = np.exp(log_wealth(cards, float(cards[0].mean()), within=(0, 1), of=6))
    assert won.mean(axis=0) == pytest.approx(np.ones(6))


def test_weights_are_stakes_and_nobody_gains_by_them_either() -> None:
    """A cluster of weight w is bet on with w times the share: by hand, and over all orders."""
    values, weights = [0.9, 0.2], [0.5, 1.0]
    expected = sum(
        start * (1 + share * 0.5 * (0.9 / 0.6 - 1)) * (1 + share * (0.2 / 0.6 - 1))
        for share, start in SHARES.items()
    )
    found = log_wealth(values, 0.6, within=(0, 1), weights=weights)
    assert found[-1] == pytest.approx(math.log(expected))
    orders = list(itertools.permutations(range(5)))
    cards, sizes = np.array([0.1, 0.3, 0.35, 0.8, 1.0]), np.array([1.0, 0.5, 0.25, 1.0, 0.75])
    mean = float(cards @ sizes / sizes.sum())
    won = [
        np.exp(log_wealth(cards[list(one)], mean, within=(0, 1), weights=sizes[list(one)], of=3.5))
        for one in orders
    ]
    assert np.mean(won, axis=0) == pytest.approx(np.ones(5))
    # Drawn with replacement: two of the five, all pairs.
    pairs = [list(one) for one in itertools.product(range(5), repeat=2)]
    drawn = [np.exp(log_wealth(cards[p], mean, within=(0, 1), weights=sizes[p])) for p in pairs]
    assert np.mean(drawn, axis=0) == pytest.approx(np.ones(2))


def test_weights_that_are_all_one_change_nothing_and_all_of_them_end_at_the_weighted_mean() -> None:
    rng = np.random.default_rng(3)
    values, weights = rng.uniform(-1, 1, 60), rng.choice([0.5, 1.0], 60)
    assert anytime_mean(values, weights=np.ones(60)) == anytime_mean(values)
    found = anytime_mean(values, weights=weights, of=float(weights.sum()))
    mean = float(values @ weights / weights.sum())
    assert found.estimate == pytest.approx(mean)
    assert found.low == found.high == pytest.approx(mean)
    for bad in ([2.0] * 60, [-1.0] * 60):
        with raises_naming(UserError, "weight", "0 to 1"):
            anytime_mean(values, weights=bad)


def test_the_ends_are_the_means_that_a_fine_grid_finds_refuted() -> None:
    values = np.random.default_rng(1).uniform(-0.2, 0.6, 60)
    grid = np.linspace(-1, 1, 801)
    for of in (None, 80):
        found = anytime_mean(values, of=of)
        small = [m for m in grid if log_wealth(values, m, of=of).max() >= LIMIT]
        large = [m for m in grid if log_wealth(-values, -m, of=of).max() >= LIMIT]
        assert max(small) <= found.low <= max(small) + 1 / 400
        assert min(large) - 1 / 400 <= found.high <= min(large)
        assert found.low < found.estimate < found.high  # type: ignore[operator]


def test_of_clusters_that_were_all_asked_the_mean_is_known() -> None:
    """By hand: (1 + 0 + ½ · 0.5)/2.5 = 0.5, and with the last between 0 and 1 from 0.4 to 0.6."""
    weights = [1.0, 1.0, 0.5]
    found = anytime_mean([1.0, 0.0, 0.5], within=(0, 1), weights=weights, of=2.5)
    assert (found.low, found.estimate, found.high) == pytest.approx((0.5, 0.5, 0.5))
    missing = anytime_mean([1, 0, 0], [1, 0, 1], within=(0, 1), weights=weights, of=2.5)
    assert (missing.low, missing.high) == pytest.approx((0.4, 0.6))
    assert missing.estimate is None


def test_it_is_wider_than_an_interval_of_one_look_and_ends_as_a_point_when_all_were_seen() -> None:
    values = np.random.default_rng(2).uniform(-1, 1, 200)
    once, always = naive_mean(values), anytime_mean(values)
    assert always.low < once.low < once.high < always.high
    every = anytime_mean(values, of=200)
    assert every.low == every.high == pytest.approx(values.mean())


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.06, 0.3, Outcome.DETECTED),
        (-0.3, -0.06, Outcome.DETECTED),
        (-0.04, 0.05, Outcome.RULED_OUT),
        (0.01, 0.04, Outcome.RULED_OUT),
        (0.04, 0.06, Outcome.INCONCLUSIVE),
        (-0.06, 0.06, Outcome.INCONCLUSIVE),
        (0.06, 0.04, Outcome.INCONCLUSIVE),  # the ends have crossed
    ],
)
def test_the_whole_interval_decides(low: float, high: float, verdict: str) -> None:
    found = AnytimeInterval(estimate=None, low=low, high=high, confidence=0.95, clusters=9)
    assert found.outcome(0.05) == verdict
    with pytest.raises(UserError):
        found.outcome(0.0)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1, 1), min_size=1, max_size=12),
    lost=st.sets(st.integers(0, 11)),
    rest=st.sampled_from([None, 0, 5]),
)
def test_a_missing_answer_never_narrows_the_interval(
    values: list[float], lost: set[int], rest: int | None
) -> None:
    of = None if rest is None else len(values) + rest
    whole = anytime_mean(values, of=of)
    small = [-1.0 if place in lost else value for place, value in enumerate(values)]
    large = [1.0 if place in lost else value for place, value in enumerate(values)]
    found = anytime_mean(small, large, of=of)
    assert found.low <= whole.low + 1e-9
    assert found.high >= whole.high - 1e-9
    assert (found.estimate is None) == (small != large)


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_a_later_look_lies_within_an_earlier_one_and_a_mirror_turns_the_ends(
    values: list[float],
) -> None:
    before, after = anytime_mean(values[:-1]), anytime_mean(values)
    assert before.low - 1e-9 <= after.low
    assert after.high <= before.high + 1e-9
    turned = anytime_mean([-value for value in values])
    assert (turned.low, turned.high) == pytest.approx((-after.high, -after.low), abs=1e-9)


@pytest.mark.parametrize("of", [None, 150])
@pytest.mark.parametrize("kind", ["coins", "rare", "small"])
def test_in_95_of_100_runs_no_look_at_all_misses_the_truth(kind: str, of: int | None) -> None:
    """400 runs of 150 clusters, looked at after each: at most 5 % miss at any look, and t misses
    in far more."""
    rng = np.random.default_rng([len(kind), of or 0])
    values = {
        "coins": rng.choice([-1.0, 1.0], (400, 150)),
        "rare": np.where(rng.random((400, 150)) < 0.03, 1.0, 0.0),
        "small": rng.normal(0.1, 0.05, (400, 150)).clip(-1, 1),
    }[kind]
    truth = {"coins": 0.0, "rare": 0.03, "small": 0.1}[kind]
    missed = 0
    for run in values:
        mean = truth if of is None else float(run.mean())
        sides = (log_wealth(run, mean, of=of), log_wealth(-run, -mean, of=of))
        missed += max(side.max() for side in sides) >= LIMIT
    assert missed <= 0.05 * 400 + 2 * math.sqrt(400 * 0.05 * 0.95)  # two standard errors of 5 %
    n = np.arange(1, 151)
    means = np.cumsum(values, axis=1) / n
    spread = np.sqrt(np.maximum(np.cumsum(values**2, axis=1) / n - means**2, 0) / n)
    assert (np.abs(means - truth) > 2 * spread)[:, 9:].any(axis=1).mean() > 0.15


def test_what_is_no_run_is_refused() -> None:
    with raises_naming(Undefined, "no clusters"):
        anytime_mean([])
    with raises_naming(Undefined, "1 of 2", "first at 1"):
        anytime_mean([0.1, math.nan])
    for values, larger, within, of in (
        ([1.5], None, (-1.0, 1.0), None),
        ([0.5], [0.4], (-1.0, 1.0), None),
        ([0.5], None, (1.0, -1.0), None),
        ([0.5, 0.5], None, (-1.0, 1.0), 1),
    ):
        with pytest.raises(UserError):
            anytime_mean(values, larger, within=within, of=of)
