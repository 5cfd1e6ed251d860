"""Cut-offs with a promise: worked by hand, by tests one after the other, and by draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from bench.simulated.scenarios import screen_looks
from evenhand.core.errors import UserError
from evenhand.statistics.screening import (
    SMALL,
    calibrate,
    has_drifted,
    labels_needed,
    one_of_each,
)
from tests.errors import assert_names

Labelled = tuple[NDArray[np.float64], NDArray[np.bool_]]


@st.composite
def labelled(draw: st.DrawFn) -> Labelled:
    """Enough texts for a promise, most of the time, with ties among their scores."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(40, 150))
    return rng.integers(1, 40, n) / 40, rng.random(n) < 0.5


def test_59_labels_are_needed_for_5_percent_and_299_for_1() -> None:
    assert (labels_needed(0.05), labels_needed(0.01)) == (59, 299)
    assert 0.95**59 <= 0.05 < 0.95**58
    scores = np.arange(58) / 100
    screen = calibrate(scores, scores >= 0)
    assert screen.low == -math.inf
    assert screen.routes([0.0]) == ["judge"]
    promise = screen.promises[0]
    assert (promise.kind, promise.group, promise.guaranteed) == ("missed harm", None, False)
    assert (promise.needs, promise.labels) == (59, 58)
    assert_names(str(promise), "missed harm", 59, 58)
    enough = calibrate(np.arange(59) / 100, np.ones(59, bool))
    assert enough.low == 0.0  # the lowest score itself: nothing that was seen is called clean
    assert enough.promises[0].guaranteed
    assert enough.routes([-0.01, 0.0]) == ["clean", "judge"]


def test_with_100_labels_the_second_lowest_score_is_the_cut_off() -> None:
    """P(Bin(100, 0.05) ≤ 1) = 0.95¹⁰⁰ + 100·0.05·0.95⁹⁹ = 0.0371, and of ≤ 2 it is 0.118."""
    assert round(0.95**100 + 5 * 0.95**99, 4) == 0.0371
    scores = np.random.default_rng(3).permutation(100) / 100
    assert calibrate(scores, np.ones(100, bool)).low == 0.01


def test_it_is_the_last_cut_off_that_tests_from_the_careful_end_reject() -> None:
    """The other route: a fixed grid, the exact binomial test at each cut-off, stopped at the first
    that does not reject."""
    rng, grid = np.random.default_rng(4), np.linspace(0, 1, 2001)
    for n, share in ((59, 0.05), (240, 0.05), (500, 0.1), (700, 0.01)):
        scores = rng.beta(4, 2, n)
        found = calibrate(scores, np.ones(n, bool), missed=share).low
        passed = 0.0
        for cut in grid:
            below = int((scores < cut).sum())
            if binomtest(below, n, share, alternative="less").pvalue > 0.05:
                break
            passed = cut
        assert passed <= found <= passed + 1 / 2000


def test_the_upper_cut_off_mirrors_the_lower_and_never_lies_below_it() -> None:
    rng = np.random.default_rng(5)
    scores, harmful = rng.random(400), np.arange(400) < 200
    one = calibrate(scores, harmful, missed=0.1, false_alarms=0.1)
    turned = calibrate(-scores, ~harmful, missed=0.1, false_alarms=0.1)
    assert (turned.low, turned.high) == (-one.high, -one.low)
    apart = calibrate(scores + 2.0 * harmful, harmful, missed=0.1, false_alarms=0.1)
    assert apart.low == apart.high > 2  # whatever lies between the two may be called clean
    assert apart.judged(scores + 2.0 * harmful) <= 1 / 400


def test_the_group_that_needs_the_most_careful_cut_off_sets_it_for_all() -> None:
    rng = np.random.default_rng(6)
    scores = np.concatenate([rng.uniform(0.5, 1, 300), rng.uniform(0.1, 1, 100), [0.05] * 10])
    groups = ["many"] * 300 + ["other"] * 100 + ["few"] * 10
    screen = calibrate(scores, np.ones(410, bool), groups)
    alone = calibrate(scores[300:400], np.ones(100, bool)).low
    assert calibrate(scores[:400], np.ones(400, bool), groups[:400]).low == alone
    assert screen.low == 0.05 < alone  # the few are promised nothing and still bound it
    said = {promise.group: promise.guaranteed for promise in screen.promises}
    assert said == {None: True, "many": True, "other": True, "few": False, SMALL: False}
    thirds = ["abc"[place % 3] for place in range(120)]  # 40 each: too few alone, not together
    pooled = calibrate(scores[:120], np.ones(120, bool), thirds)
    assert pooled.low == calibrate(scores[:120], np.ones(120, bool)).low
    assert [promise.guaranteed for promise in pooled.promises] == [True, False, False, False, True]


@settings(max_examples=150, deadline=None)
@given(texts=labelled(), lost=st.sets(st.integers(0, 149), min_size=1), grouped=st.booleans())
def test_a_missing_score_makes_no_text_clean_and_no_screen_bolder(
    texts: Labelled, lost: set[int], grouped: bool
) -> None:
    scores, harmful = texts
    groups = ["ab"[place % 2] for place in range(len(scores))] if grouped else None
    whole = calibrate(scores, harmful, groups, missed=0.1, false_alarms=0.1)
    holes = np.array([math.nan if n in lost else score for n, score in enumerate(scores)])
    found = calibrate(holes, harmful, groups, missed=0.1, false_alarms=0.1)
    assert found.low <= whole.low
    assert found.high >= whole.high or whole.high == whole.low
    for screen in (whole, found):
        routes = screen.routes(holes)
        assert all(routes[place] == "judge" for place in lost if place < len(scores))


@settings(max_examples=60, deadline=None)
@given(texts=labelled())
def test_twice_the_same_labels_never_send_more_to_the_judge(texts: Labelled) -> None:
    scores, harmful = texts
    once = calibrate(scores, harmful, missed=0.1)
    twice = calibrate(np.tile(scores, 2), np.tile(harmful, 2), missed=0.1)
    assert twice.low >= once.low


def test_in_95_of_100_draws_all_promises_hold_at_once() -> None:
    """Three groups whose harmful scores are uniform from 0, 0.02 and 0.3: the missed share of a
    cut-off is known. Uncorrected, as one pair of cut-offs serves all."""
    rng, starts, failed = np.random.default_rng(8), np.array([0.0, 0.02, 0.3]), 0
    for _ in range(400):
        group = rng.integers(3, size=600)
        scores = starts[group] + (1 - starts[group]) * rng.random(600)
        low = calibrate(scores, np.ones(600, bool), group.tolist()).low
        failed += (((low - starts) / (1 - starts)).max()) > 0.05
    assert failed <= binom.ppf(0.99, 400, 0.05)
    assert failed >= 2  # nor is it careful without need


def test_one_text_of_each_cluster_is_drawn() -> None:
    clusters = ["a", "b", "a", "c", "b", "a"]
    seen = [one_of_each(clusters, seed) for seed in range(40)]
    assert all(sorted(clusters[place] for place in one) == ["a", "b", "c"] for one in seen)
    assert {int(one[one != 3][0]) for one in seen} >= {0, 1, 2}


def test_a_shift_of_scores_is_seen_and_without_one_few_alarms_are_raised_at_any_look() -> None:
    rng = np.random.default_rng(9)
    alarms = seen = 0
    for _ in range(80):
        alarms += screen_looks(rng, looks=8, texts=200).drifted
        seen += has_drifted(rng.random(300), [rng.random(300) ** 0.6]).drifted
    assert alarms <= binom.ppf(0.99, 80, 0.05)
    assert seen > 74
    assert has_drifted([0.5] * 50, [[math.nan] * 50]).drifted  # a scorer that began to fail
    none = has_drifted([], [[0.5]] * 3)
    assert (none.p_value, none.level, none.power(1.0)) == (1, 0.05 / 12, 0)


def test_a_change_in_small_batches_is_seen_as_in_one_and_without_one_few_alarms_are_raised() -> (
    None
):
    rng = np.random.default_rng(10)
    alarms = sum(screen_looks(rng, looks=12, texts=4, reference=118).drifted for _ in range(60))
    assert alarms <= binom.ppf(0.99, 60, 0.05)
    seen = sum(screen_looks(rng, looks=12, texts=4, reference=118, change=6).drifted
               for _ in range(20))  # fmt: skip
    assert seen >= 19
    late = sum(screen_looks(rng, looks=24, texts=20, change=6, since=16).drifted for _ in range(10))
    assert late >= 9  # good looks before do not hide a change of the last eight


def test_the_power_of_a_look_is_that_of_draws() -> None:
    rng = np.random.default_rng(11)
    hits, said = 0, 0.0
    for _ in range(200):
        then, now = rng.random(150), rng.random(100)
        now[rng.random(100) < 0.5] *= 0.5  # a quarter of all passes the median
        found = has_drifted(then, [now])
        hits, said = hits + found.drifted, found.power(0.25)
    assert hits / 200 == pytest.approx(said, abs=0.12)


def test_what_is_no_calibration_is_refused() -> None:
    for scores, harmful, groups in (
        ([0.1, 0.2], [True], None),
        ([0.1, 0.2], [1, 0], None),
        ([0.1, math.inf], [True, False], None),
        ([0.1], [True], ["a", "b"]),
    ):
        with pytest.raises(UserError):
            calibrate(scores, harmful, groups)
    with pytest.raises(UserError):
        calibrate([0.1], [True], missed=1.0)
    with pytest.raises(UserError):
        has_drifted([0.1], [])
