"""The cluster bootstrap: by every resample, by scipy, and what a seed promises."""

import itertools
import math
import time

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.bootstrap import (
    _order_statistic,
    cluster_bootstrap,
    cohen_dz,
    dz_of_totals,
    ratio_of_totals,
)
from evenhand.statistics.clusters import cluster_sums, clustered_mean
from tests.errors import raises_naming

FOUR = np.array([[3.0, 4.0], [1.0, 4.0], [0.0, 1.0], [2.0, 2.0]])


def skewed(clusters: int = 60, seed: int = 1) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, clusters)
    return np.column_stack([sizes * rng.exponential(size=clusters), sizes])


def test_drawing_approaches_every_resample_written_out() -> None:
    picks = itertools.product(range(4), repeat=4)
    values = sorted(FOUR[list(p), 0].sum() / FOUR[list(p), 1].sum() for p in picks)
    drawn = cluster_bootstrap(FOUR, draws=20_000, kind="percentile")
    assert drawn.se == pytest.approx(np.std(values), rel=0.02)
    ends = [values[math.ceil(share * 256) - 1] for share in (0.025, 0.975)]
    assert [drawn.low, drawn.high] == pytest.approx(ends, abs=0.02)


@pytest.mark.parametrize("kind", ["percentile", "bca"])
def test_the_interval_agrees_with_scipy_on_a_ratio_of_cluster_sums(kind: str) -> None:
    sums = skewed()
    theirs = bootstrap(
        (sums[:, 0], sums[:, 1]),
        lambda y, x, axis=-1: y.sum(axis=axis) / x.sum(axis=axis),
        paired=True,
        n_resamples=10_000,
        method=kind,
        rng=np.random.default_rng(2),
    )
    ours = cluster_bootstrap(sums, seed=3, kind="bca" if kind == "bca" else "percentile")
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.04 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.04 * width)
    assert ours.se == pytest.approx(theirs.standard_error, rel=0.04)


def test_bca_shifts_the_interval_of_a_skewed_mean_towards_its_long_tail() -> None:
    plain = cluster_bootstrap(skewed(), kind="percentile")
    shifted = cluster_bootstrap(skewed(), kind="bca")
    assert shifted.low > plain.low
    assert shifted.high > plain.high


def test_the_bootstrap_checks_the_t_interval_over_343_templates() -> None:
    rng = np.random.default_rng(4)
    keys = np.repeat(np.arange(343), 2)
    values = np.clip(np.round(rng.normal(size=343)[keys] + rng.normal(size=686)), -1, 1)
    robust = clustered_mean(values, keys)
    drawn = cluster_bootstrap(cluster_sums(keys, values, np.ones(686)))
    assert drawn.estimate == pytest.approx(robust.estimate)
    assert drawn.se == pytest.approx(robust.se, rel=0.03)
    assert [drawn.low, drawn.high] == pytest.approx([robust.low, robust.high], abs=0.01)


def test_a_seed_gives_the_same_numbers_again_and_another_seed_gives_others() -> None:
    assert cluster_bootstrap(skewed(), seed=5) == cluster_bootstrap(skewed(), seed=5)
    assert cluster_bootstrap(skewed(), seed=5) != cluster_bootstrap(skewed(), seed=6)


def test_an_effect_size_has_an_interval_too() -> None:
    differences = np.random.default_rng(6).normal(0.3, 1, 100)
    sums = cluster_sums(range(100), differences, differences**2, np.ones(100))
    found = cluster_bootstrap(sums, dz_of_totals)
    assert found.estimate == pytest.approx(cohen_dz(differences))
    assert found.se == pytest.approx(math.sqrt(1 / 100 + found.estimate**2 / 200), rel=0.2)


@pytest.mark.parametrize(
    ("confidence", "rank"), [(0.95, (250, 9750)), (0.9, (500, 9500)), (0.99, (50, 9950))]
)
def test_a_percentile_is_the_ceiling_order_statistic_in_spite_of_rounding(
    confidence: float, rank: tuple[int, int]
) -> None:
    """(1 − 0.95)/2·10,000 is 250.00000000000023 in floating point: not the 251st."""
    values, ones = np.arange(1.0, 10_001), np.ones(10_000, np.int64)
    beyond = (1 - confidence) / 2
    assert _order_statistic(values, ones, beyond) == rank[0]
    assert _order_statistic(values, ones, 1 - beyond) == rank[1]


@pytest.mark.parametrize("kind", ["percentile", "bca"])
def test_equal_clusters_are_said_to_show_no_spread(kind: str) -> None:
    sums = np.array([[0.3, 3.0], [0.1, 1.0], [0.2, 2.0]])
    found = cluster_bootstrap(sums, kind="bca" if kind == "bca" else "percentile", draws=200)
    assert found.no_spread
    assert found.low == found.high == found.estimate


def test_what_cannot_be_resampled_is_undefined() -> None:
    with raises_naming(Undefined, "1 cluster(s)", "resample"):
        cluster_bootstrap([[1.0, 2.0]])
    with raises_naming(Undefined, "0/0"):
        cluster_bootstrap([[0.0, 0.0], [0.0, 0.0]])
    with raises_naming(Undefined, 10000, "resamples"):
        cluster_bootstrap([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])


def test_bca_is_undefined_where_no_draw_lies_below_the_estimate() -> None:
    sums = skewed()
    centre = float(ratio_of_totals(sums.sum(axis=0, keepdims=True))[0])

    def distance(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(ratio_of_totals(totals) - centre)

    with raises_naming(Undefined, "kind='percentile'"):
        cluster_bootstrap(sums, distance)
    assert cluster_bootstrap(sums, distance, kind="percentile").low > 0


def test_a_call_that_makes_no_sense_is_a_user_error() -> None:
    with raises_naming(UserError, "sums", "row", "cluster"):
        cluster_bootstrap([1.0, 2.0])
    with raises_naming(UserError, "1 draws"):
        cluster_bootstrap(FOUR, draws=1)


def test_ten_thousand_draws_over_343_clusters_take_a_fraction_of_a_second() -> None:
    start = time.process_time()
    cluster_bootstrap(skewed(343))
    assert time.process_time() - start < 2  # measured: 0.1
