"""Changes over looks: exact while nothing changes, and found soon once something does."""

import numpy as np
import pytest
from scipy.stats import kstest

from evenhand.core.errors import UserError
from evenhand.statistics.change_detection import score, watched
from tests.errors import raises_naming


def _looks(rng: np.random.Generator, looks: int, clusters: int = 60) -> np.ndarray:
    """Answers of a model that does not change: every cluster has a chance of its own."""
    return (rng.random((looks, clusters)) < rng.beta(0.5, 0.5, clusters)).astype(float)


def test_scores_are_standard_normal_and_independent_while_nothing_changes() -> None:
    rng = np.random.default_rng(1)
    runs = [watched(_looks(rng, 9), 1e12, draws=99, seed=n).scores[1:] for n in range(400)]
    scores = np.array(runs)
    assert kstest(scores.ravel(), "norm").pvalue > 0.01
    of_looks = np.corrcoef(scores.T) - np.eye(8)
    assert np.abs(of_looks).max() < 4.5 / np.sqrt(400)


def test_answers_that_never_changed_raise_no_alarm_and_are_no_certainty() -> None:
    found = watched(np.tile([0.0, 1.0, 0.5], (500, 1)), 10)
    assert np.isnan(found.scores).all()
    assert not any(found.evidence)
    # The first that is another one is a look like any: one of many clusters says little.
    late = np.zeros((30, 200))
    late[-1, 0] = 1
    assert 1 < watched(late, 1_000).scores[-1] < 4


def test_a_change_is_dated_by_the_looks_that_showed_something() -> None:
    looks = np.concatenate([np.zeros((6, 60)), np.full((3, 60), np.nan), np.ones((2, 60))])
    looks[2, :30] = 1  # so that looks differ before
    found = watched(looks, 20)
    assert [(one.look, one.since) for one in found.alarms][-1] in [(9, 9), (10, 9)]


def test_alarms_are_as_rare_as_stated_however_often_one_looks() -> None:
    """By Doob: the evidence is 5 on average after the first look and five more, so that the chance
    of its having reached a threshold at any of them is at most 5 over the threshold."""
    rng = np.random.default_rng(2)
    peaks = np.array(
        [max(watched(_looks(rng, 6, 20), 1e12, draws=99, seed=n).evidence) for n in range(1_000)]
    )
    for threshold in (10, 20, 50, 200):
        assert np.mean(peaks >= threshold) <= 5 / threshold
    assert np.mean(peaks >= 10) > 0.05  # and it is no bound that nothing comes near


def test_one_cluster_that_changed_among_equal_looks_is_as_likely_as_it_is() -> None:
    """By hand: eleven looks, one cluster of 0s and today a 1. A drawn total is today's with a
    chance of 1 in 11, so that the place among them is above 10/11 at least."""
    looks = np.zeros((11, 3))
    looks[-1, 0] = 1
    scores = [score(looks, np.random.default_rng(n), 1_999) for n in range(200)]
    assert min(scores) > 1.2  # Φ(1.2) = 0.885, and 10/11 = 0.909 but for the draws
    assert np.median(scores) == pytest.approx(1.69, abs=0.15)  # Φ⁻¹(1 − 1/22)


def test_a_change_is_found_soon_and_dated() -> None:
    rng = np.random.default_rng(3)
    delays, dated = [], []
    for seed in range(10):
        chances = rng.beta(0.5, 0.5, 343)
        before = rng.random((20, 343)) < chances
        after = rng.random((8, 343)) < np.minimum(chances + 0.1, 1)
        found = watched(np.concatenate([before, after]).astype(float), 1_000, draws=199, seed=seed)
        assert found.alarms
        assert found.alarms[0].upwards
        delays.append(found.alarms[0].look - 19)
        dated.append(found.alarms[0].since)
    assert np.median(delays) <= 3
    assert sorted(dated)[1] >= 18
    assert sorted(dated)[-2] <= 21  # it was at look 20


def test_a_cluster_that_is_missing_moves_nothing_and_a_look_without_any_is_passed_over() -> None:
    rng = np.random.default_rng(4)
    looks = _looks(rng, 6)
    without = looks.copy()
    without[:, 7] = np.nan
    thinner = np.delete(looks, 7, axis=1)
    assert watched(without, 100).evidence == watched(thinner, 100).evidence
    empty = looks.copy()
    empty[3] = np.nan
    found = watched(empty, 100)
    assert np.isnan(found.scores[3])
    assert found.evidence[3] == found.evidence[2]


def test_after_an_alarm_it_begins_anew_with_the_look_that_raised_it() -> None:
    looks = np.concatenate([np.zeros((6, 60)), np.ones((6, 60))])
    found = watched(looks, 50)
    assert [one.look for one in found.alarms] == [6]
    assert found.alarms[0].since == 6
    assert max(found.evidence[7:]) < 50


def test_a_threshold_of_one_look_is_refused() -> None:
    with raises_naming(UserError, "threshold", "above 1", "not 1"):
        watched([[0.0]], 1)
