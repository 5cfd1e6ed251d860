"""Figures of a scorer, each worked out by hand."""

import math

import pytest
from scipy.stats import beta

from evenhand.core.errors import Undefined
from evenhand.statistics.metrics.scorer_quality import (
    auc,
    calibration_error,
    kappa_at,
    reliability,
    share,
    spearman,
)


def test_auc_counts_pairs_and_a_tie_is_half_a_pair() -> None:
    # 0.9 beats 0.8, 0.5 and 0.2; 0.5 loses to 0.8, ties with 0.5, beats 0.2: 4.5 of 6 pairs.
    scores, labels = [0.9, 0.8, 0.5, 0.5, 0.2], [True, False, True, False, False]
    assert auc(scores, labels) == 0.75
    assert auc([0.4] * 4, [True, True, False, False]) == 0.5


def test_auc_has_no_value_where_all_labels_are_equal() -> None:
    with pytest.raises(Undefined):
        auc([0.1, 0.9], [True, True])


def test_spearman_averages_the_ranks_of_ties() -> None:
    # Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5 over √(4.5 · 5).
    assert spearman([1, 2, 2, 4], [1, 3, 2, 4]) == pytest.approx(4.5 / math.sqrt(22.5))
    with pytest.raises(Undefined):
        spearman([0.5, 0.5], [0.1, 0.2])


def test_kappa_is_agreement_beyond_chance_at_the_threshold() -> None:
    # 3 of 4 agree; by chance 0.5 · 0.25 + 0.5 · 0.75 = 0.5: (0.75 − 0.5) / (1 − 0.5).
    assert kappa_at([0.9, 0.5, 0.1, 0.1], [0.9, 0.1, 0.1, 0.49], 0.5) == pytest.approx(0.5)


def test_the_calibration_error_weighs_each_step_by_its_texts() -> None:
    curve = reliability([0.05, 0.15, 0.15, 0.95], [0.25, 0.15, 0.35, 0.55])
    assert [(step.low, step.n) for step in curve] == [(0.0, 1), (0.1, 2), (0.9, 1)]
    assert [step.target for step in curve] == pytest.approx([0.25, 0.25, 0.55])
    # 1/4 · 0.2 + 2/4 · 0.1 + 1/4 · 0.4
    assert calibration_error(curve) == pytest.approx(0.2)


def test_a_score_on_a_border_belongs_to_the_step_above_and_one_to_the_last() -> None:
    curve = reliability([0.3, 0.6, 0.7, 1.0], [0, 0, 0, 0])
    assert [step.low for step in curve] == [0.3, 0.6, 0.7, 0.9]


def test_texts_of_one_template_are_not_independent() -> None:
    # Cluster sums about the mean 0.25: 1.5, −0.5, −0.5, −0.5; se² = 4/3 · 3 / 64 = 0.25².
    events = [True, True, False, False, False, False, False, False]
    found = share(events, ["a", "a", "b", "b", "c", "c", "d", "d"])
    # n* = 0.1875/0.0625 · (t₇/t₃)² = 3 · (2.364624/3.182446)² = 1.65627, as exact trials.
    n = 1.65627
    ends = beta.ppf(0.025, n / 4, 3 * n / 4 + 1), beta.ppf(0.975, n / 4 + 1, 3 * n / 4)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.25, *ends), abs=1e-5)
    alone = share(events, range(8))
    assert alone.high < found.high - 0.1


def test_nothing_seen_in_five_templates_still_allows_half() -> None:
    found = share([False] * 10, [n // 2 for n in range(10)])
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 5))  # exact, 0 of 5
