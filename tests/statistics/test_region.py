"""The interval of a function of means, by hand, against the delta method and at a kink."""

import numpy as np
import pytest
from scipy.stats import t

from evenhand.core.errors import Undefined
from evenhand.statistics.clusters import naive_mean, of_means
from evenhand.statistics.metrics.likelihood import icat
from tests.errors import raises_naming


def _icat(means: np.ndarray) -> np.ndarray:
    return np.asarray(icat(means[:, 0], means[:, 1]))


def test_of_one_mean_the_interval_is_students() -> None:
    rows = np.random.default_rng(3).normal(5, 2, 12)
    found, plain = of_means(rows[:, None], lambda m: 3 * m[:, 0] - 1), naive_mean(rows)
    ends = (found.estimate, found.low, found.high)
    assert ends == pytest.approx([3 * x - 1 for x in (plain.estimate, plain.low, plain.high)])


def test_icat_ends_at_the_language_model_score_where_50_is_within_the_stereotype_score() -> None:
    """LMS is 90 ± r and SS 50 ± r, both with r = t₃·s/√4 = 3.182446·1.825742/2: the ends are
    90 + r, and (90 − r)(50 − r)/50."""
    moved = np.array([-2.0, -1.0, 1.0, 2.0])
    reach = t.ppf(0.975, 3) * np.std(moved, ddof=1) / 2
    found = of_means(np.column_stack([90 + moved, 50 - moved[::-1]]), _icat)
    assert found.estimate == 90
    assert found.high == pytest.approx(90 + reach, abs=0.01)
    assert found.low == pytest.approx((90 - reach) * (50 - reach) / 50)


def test_an_unbiased_model_over_79_terms_is_covered_93_percent_of_the_time() -> None:
    """Resampling covered 57 %."""
    rng, hits = np.random.default_rng(4), 0
    for _ in range(120):
        chances = np.clip(rng.normal(0.5, 0.1, 79), 0.02, 0.98)
        terms = np.column_stack([rng.binomial(40, 0.9, 79) / 40, rng.binomial(20, chances) / 20])
        found = of_means(100 * terms, _icat)
        hits += found.low <= 90 <= found.high
    assert hits >= 0.93 * 120


def test_a_region_without_spread_is_a_point_and_one_cluster_has_none() -> None:
    assert of_means([[90.0, 50.0]] * 3, _icat).no_spread
    with raises_naming(Undefined, "one cluster"):
        of_means([[90.0, 50.0]], _icat)
