"""Means from few labels and many predictions: by hand, by other routes, and by draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.simulated.scenarios import SureScorer, rate_from_few_labels
from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.clusters import clustered_mean, naive_mean
from evenhand.statistics.prediction_powered import chances_to_label, labels_for, powered_mean
from tests.errors import raises_naming

VALUES = st.lists(st.floats(0, 1), min_size=25, max_size=40)


def graded(rng: np.random.Generator, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """An outcome from 0 to 1 with a mean of 0.3, and predictions of it."""
    y = rng.beta(3, 7, n)
    return y, (y + rng.normal(0, noise, n)).clip(0, 1)


def test_four_labels_by_hand() -> None:
    """f = 0, 1, 2, 3, 4, 5 of six texts, y = 1, 3, 2, 6 of the first four; λ = 1 is given, which
    below 20 labels is not used, so that it is the mean of 1, 3, 2, 6."""
    found = powered_mean([0, 1, 2, 3, 4, 5], [1, 3, 2, 6], [0, 1, 2, 3], share_used=1.0)
    alone = naive_mean([1, 3, 2, 6])
    assert (found.estimate, found.low, found.high) == pytest.approx((3, alone.low, alone.high))
    assert found.share_used == 0


def test_with_lambda_given_it_is_the_formula_of_ppi() -> None:
    """λ·f̄ + mean(y − λf); with all texts far more than labels, se² is var(y − λf)/n + λ²·var(f)/N,
    with one degree of freedom less for λ."""
    rng = np.random.default_rng(1)
    y, f = graded(rng, 40_000, 0.1)
    at = np.arange(200)
    found = powered_mean(f, y[at], at, share_used=0.7)
    rest = y[at] - 0.7 * f[at]
    assert found.estimate == pytest.approx(0.7 * f.mean() + rest.mean())
    expected = rest.var(ddof=2) / 200 + 0.49 * f.var() / 40_000
    assert found.se**2 == pytest.approx(expected, rel=0.01)
    assert found.high - found.estimate == pytest.approx(stats.t.ppf(0.975, 198) * found.se)
    assert (found.df, found.labels, found.predictions) == (198, 200, 40_000)


def test_the_chosen_lambda_is_the_slope_of_labels_on_predictions() -> None:
    rng = np.random.default_rng(2)
    y, f = graded(rng, 100_000, 0.1)
    at = np.arange(300)
    found = powered_mean(f, y[at], at)
    assert found.share_used == pytest.approx(stats.linregress(f[at], y[at]).slope, rel=0.02)
    for other in (found.share_used - 0.1, found.share_used + 0.1):
        assert powered_mean(f, y[at], at, share_used=other).se > found.se


@settings(max_examples=80, deadline=None)
@given(y=VALUES, seed=st.integers(0, 999))
def test_lambda_0_is_the_labels_alone_and_the_interval_is_never_wider(
    y: list[float], seed: int
) -> None:
    y = [value * 0.9 + 0.05 for value in y]  # graded: nothing is added to such labels
    rng = np.random.default_rng(seed)
    f, at = rng.random(80), rng.permutation(80)[: len(y)]
    none = powered_mean(f, y, at, share_used=0.0)
    alone = naive_mean(y)
    assert (none.estimate, none.low, none.high) == pytest.approx(
        (alone.estimate, alone.low, alone.high)
    )
    found = powered_mean(f, y, at)
    assert found.share_used >= 0
    assert found.width_ratio <= 1 + 1e-12
    assert found.labels_alone == pytest.approx((alone.low, alone.high))


def test_to_labels_of_0_and_1_one_error_of_either_kind_is_added() -> None:
    """Of 50 labels without an event, 50 zeros and a 1 and a 0 more: (1/52) ± t·s/√52."""
    found = powered_mean(np.full(200, 0.3), [0.0] * 50, np.arange(50))
    added = naive_mean([0.0] * 51 + [1.0])
    assert (found.estimate, found.low, found.high) == pytest.approx((0, added.low, added.high))
    perfect = powered_mean(np.tile([0.0, 1.0], 500), [0.0, 1.0] * 25, np.arange(50))
    assert perfect.high - perfect.low > 0.08  # no error in 50 is not no error at all


def test_weights_are_one_over_the_chance_and_equal_chances_change_nothing() -> None:
    rng = np.random.default_rng(3)
    y, f = graded(rng, 500, 0.1)
    at = np.arange(60)
    even = powered_mean(f, y[at], at, chances=np.full(60, 0.12))
    plain = powered_mean(f, y[at], at)
    assert (even.low, even.high, even.df) == pytest.approx((plain.low, plain.high, plain.df))
    chances = rng.uniform(0.1, 1, 60)
    found = powered_mean(f, y[at], at, chances=chances, share_used=0.0)
    assert found.estimate == pytest.approx(np.average(y[at], weights=1 / chances))
    assert found.df == pytest.approx((1 / chances).sum() ** 2 / (1 / chances**2).sum() - 1)


def test_with_lambda_0_clusters_are_those_of_the_clustered_mean() -> None:
    rng = np.random.default_rng(4)
    y, f = graded(rng, 120, 0.1)
    clusters = np.repeat(np.arange(30), 4)
    found = powered_mean(f, y, np.arange(120), clusters=clusters, share_used=0.0)
    expected = clustered_mean(y, clusters)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )


@pytest.mark.parametrize(
    ("kind", "n"), [("graded", 50), ("judge", 50), ("coin", 50), ("active", 120), ("alike", 60)]
)
def test_in_95_of_100_draws_the_mean_lies_in_the_interval(kind: str, n: int) -> None:
    """500 draws of 1,000 texts each: between 92 and 98.5 % must cover."""
    rng, hits, widths = np.random.default_rng([5, *kind.encode()]), 0, []
    for _ in range(500):
        at, chances, clusters, truth = np.arange(n), None, None, 0.3
        if kind == "graded":
            y, f = graded(rng, 1_000, 0.1)
        elif kind == "alike":  # five of a kind
            clusters = np.repeat(np.arange(200), 5)
            y, f = (np.repeat(one, 5) for one in graded(rng, 200, 0.1))
            y, at = y + rng.normal(0, 0.05, 1_000), np.arange(5 * n)
        else:
            y = (rng.random(1_000) < truth).astype(float)
            right = 0.5 if kind == "coin" else 0.8
            f = np.where(rng.random(1_000) < right, y, 1 - y)
        if kind == "active":
            sure = rng.random(1_000)  # says nothing of the error, and moves the chances
            chance = chances_to_label(sure, n)
            at = np.flatnonzero(rng.random(1_000) < chance)
            chances = chance[at]
        found = powered_mean(f, y[at], at, chances=chances, clusters=clusters)
        hits += found.low <= truth <= found.high
        widths.append(found.width_ratio)
    assert 0.92 <= hits / 500 <= 0.985
    assert max(widths) <= 1.02
    assert (np.mean(widths) > 0.99) == (kind == "coin")


SURE = [
    *(SureScorer(unsure=u, missed=m)
      for u, m in ((0.02, 0.05), (0.05, 0.03), (0.1, 0.03), (0.1, 0.06), (0.2, 0.03))),
    SureScorer(unsure=0.05, missed=0.03, sure=0.0, unsure_score=1.0),  # a scorer of 0 and 1
    SureScorer(unsure=0.05, missed=0.03, sure=0.0, unsure_score=0.9),  # a word list
]  # fmt: skip


@pytest.mark.parametrize("labels", [60, 150])
@pytest.mark.parametrize("scorer", SURE)
def test_the_interval_holds_for_a_scorer_that_is_sure_and_sometimes_wrong(
    scorer: SureScorer, labels: int
) -> None:
    """At the mean weight of an added label 71 % held, and the truth was always above the rest."""
    rng = np.random.default_rng(7)
    found = [rate_from_few_labels(rng, scorer, labels) for _ in range(300)]
    assert np.mean([one.holds for one in found]) >= 0.94 - 2 * math.sqrt(0.94 * 0.06 / 300)
    assert np.mean([one.high - one.low for one in found]) < (0.18 if labels == 60 else 0.11)


def test_an_added_label_has_the_largest_weight_of_any() -> None:
    """Nine clean labels of weight 1 and one of weight 10: the added 1 and 0 weigh 10 each, so that
    the middle of the interval is 10/(9 + 10 + 20)."""
    found = powered_mean(np.full(50, 0.3), [0.0] * 10, np.arange(10), chances=[1.0] * 9 + [0.1])
    assert (found.low + found.high) / 2 == pytest.approx(10 / 39)
    assert found.estimate == 0


@settings(max_examples=60, deadline=None)
@given(
    uncertainty=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    part=st.floats(0.01, 1),
)
def test_chances_spend_the_budget_leave_nobody_out_and_follow_the_uncertainty(
    uncertainty: list[float], part: float
) -> None:
    budget = part * len(uncertainty)
    found = chances_to_label(uncertainty, budget)
    assert found.sum() == pytest.approx(budget, rel=1e-6)
    assert (found <= 1).all()
    assert (found >= 0.75 * budget / len(uncertainty) - 1e-12).all()
    order = np.argsort(uncertainty)
    assert (np.diff(found[order]) >= -1e-12).all()


def test_what_is_missing_is_refused_as_a_label_and_filled_as_a_prediction() -> None:
    rng = np.random.default_rng(6)
    y, f = graded(rng, 300, 0.1)
    at = np.arange(100)
    with raises_naming(Undefined, "1 of 100", "labels", "first at 0"):
        powered_mean(f, [math.nan, *y[1:100]], at)
    holes = np.where(np.arange(300) % 7 == 0, math.nan, f)
    filled = np.where(np.isnan(holes), np.nanmean(holes), f)
    assert powered_mean(holes, y[at], at) == powered_mean(filled, y[at], at)
    assert powered_mean(np.full(300, math.nan), y[at], at).share_used == 0
    assert chances_to_label([math.nan, 1.0, 0.0], 1)[0] == chances_to_label([1.0, 1.0, 0.0], 1)[0]


def test_what_is_no_sample_is_refused() -> None:
    with pytest.raises(Undefined):
        powered_mean([0.1, 0.2], [], [])
    with raises_naming(Undefined, "one", "cluster"):
        powered_mean([0.1, 0.2], [0.5, 0.6], [0, 1], clusters=["a", "a"])
    for at in ([0, 0], [0, 2], [0, -1], [0]):
        with pytest.raises(UserError):
            powered_mean([0.1, 0.2], [0.5, 0.6], at)
    with pytest.raises(UserError):
        powered_mean([0.1, 0.2], [0.5, 0.6], [0, 1], chances=[0.0, 1.0])
    for budget in (0, 3):
        with pytest.raises(UserError):
            chances_to_label([0.1, 0.2], budget)


def test_the_labels_that_a_width_needs_by_hand() -> None:
    """± 0.05 at a share of one half. Alone: t·√(0.25/(n + 1)), with t of 386 degrees of freedom
    1.9662. With r = 0.8 e is 0.8, and the two added labels add 2 · 1.3² = 3.38 to 0.09·n."""
    assert labels_for(0.05, texts=10_000) == 386
    for n, wide in ((385, True), (386, False)):
        assert (stats.t.ppf(0.975, n) * math.sqrt(0.25 / (n + 1)) > 0.05) == wide
    assert labels_for(0.05, texts=10_000, correlation=0.8) == 173
    assert labels_for(0.05, texts=10_000, correlation=-0.8) == 173
    for n, wide in ((172, True), (173, False)):
        se = math.sqrt((0.09 * n + 3.38) / ((n + 1) * (n + 2)) + 0.64 * 0.25 / 10_000)
        assert (stats.t.ppf(0.975, n) * se > 0.05) == wide


def test_predictions_never_need_more_labels_than_labels_alone_and_never_fewer_than_20() -> None:
    for share in (0.01, 0.1, 0.5):
        alone = labels_for(0.05, texts=10_000, share=share)
        fewer = [labels_for(0.05, texts=10_000, share=share, correlation=r) for r in (0.3, 0.9, 1)]
        assert alone is not None
        assert all(one is not None and 20 <= one <= alone for one in fewer)
    assert labels_for(0.4, texts=10_000, correlation=1.0) == 20  # below it is the labels alone
    assert labels_for(0.05, texts=385, correlation=0.8) is None  # all of them are too few
    assert labels_for(0.4, texts=19) is None
    with raises_naming(UserError, "labels", "reach", "correlation"):
        labels_for(0.0, texts=100)


@pytest.mark.parametrize("right", [0.7, 0.9])
def test_the_planned_labels_give_the_planned_width(right: float) -> None:
    """A judge that is right so often about texts of which half are harmful has a correlation of
    2 · right − 1 with them."""
    rng, texts, reach = np.random.default_rng(2), 3_000, 0.06
    n = labels_for(reach, texts=texts, correlation=2 * right - 1)
    assert n is not None
    widths = []
    for _ in range(40):
        y = (rng.random(texts) < 0.5).astype(float)
        f = np.where(rng.random(texts) < right, y, 1 - y)
        found = powered_mean(f, y[:n], np.arange(n))
        widths.append((found.high - found.low) / 2)
    assert reach * 0.85 <= np.mean(widths) <= reach * 1.02
