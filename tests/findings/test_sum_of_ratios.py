"""A weighted sum of ratios, by hand, by a regression and against the plain ratio."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm

from evenhand.findings.estimates import NO_SPREAD
from evenhand.findings.measures import Measure, Statistic
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Mean, Ratio, SumOfRatios
from evenhand.findings.totals import RunTotals
from evenhand.statistics.clusters import linearized

_RIGHT, _ALIGNED = pl.col("right"), pl.col("aligned")
_GAP = SumOfRatios(((1.0, _RIGHT & _ALIGNED, _ALIGNED), (-1.0, _RIGHT & ~_ALIGNED, ~_ALIGNED)))
_BOTH = SumOfRatios(
    ((1.0, _RIGHT & _ALIGNED, _ALIGNED), (1.0, _RIGHT & ~_ALIGNED, ~_ALIGNED)), -1.0
)


def _shares(statistic: Statistic) -> ScoringSpec:
    """An instrument with one measure, of the statistic that is asked for."""

    class Shares(ScoringSpec):
        name = "shares"
        clusters = "clusters"
        columns = ()
        facts: ClassVar = {}
        measures = (Measure(name="m", label="m", statistic=statistic),)

    return Shares()


def _frame(rows: Sequence[tuple[str, bool, bool | None]]) -> pl.DataFrame:
    """Cluster, aligned and right of each row."""
    kept = pl.DataFrame(rows, schema={"cluster": pl.String, "aligned": pl.Boolean,
                                      "right": pl.Boolean}, orient="row")  # fmt: skip
    state = pl.when(pl.col("right").is_null()).then(pl.lit("missing")).otherwise(pl.lit(SCORED))
    return kept.with_row_index("item_id").with_columns(
        pl.col("item_id").cast(pl.String), state=state
    )


def _value(shares: ScoringSpec, frame: pl.DataFrame) -> float:
    value = RunTotals.of(shares, [frame]).estimate(shares.measures[0]).value
    assert value is not None
    return value


def _random(seed: int, chance: float = 0.7) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    lean = rng.normal(0, 0.2, 12)
    rows = []
    for number in range(12):
        for place in range(6):
            right = bool(rng.random() < chance + lean[number])
            rows.append((f"{number}", place % 3 == 0, None if place == 5 else right))
    return _frame(rows)


def test_the_gap_of_two_shares_of_three_clusters_worked_by_hand() -> None:
    """Aligned: a 2 of 2, b 1 of 2, so R = 3/4 and X = 4. Not aligned: b 0 of 1, c 1 of 1, so
    R = 1/2 and X = 2. u_a = (2 − 1.5)/4 = 1/8; u_b = (1 − 1.5)/4 − (0 − 0.5)/2 = 1/8;
    u_c = −(1 − 0.5)/2 = −1/4. se² = 3/2 · (1/64 + 1/64 + 1/16)."""
    rows = [("a", True, True), ("a", True, True), ("b", True, True), ("b", True, False),
            ("b", False, False), ("c", False, True), ("c", True, None)]  # fmt: skip
    found = RunTotals.of(_shares(_GAP), [_frame(rows)]).estimate(_shares(_GAP).measures[0])
    assert found.value == pytest.approx(1 / 4)
    assert (found.n, found.clusters) == (6, 3)
    reach = 4.302652729749464 * math.sqrt(3 / 2 * 3 / 32)  # t with 2 degrees of freedom
    assert (found.low, found.high) == pytest.approx((1 / 4 - reach, 1 / 4 + reach))


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_of_two_shares_is_the_slope_of_a_regression_with_clustered_errors(
    seed: int,
) -> None:
    frame = _random(seed)
    known = frame.drop_nulls("right")
    aligned = known["aligned"].cast(pl.Float64).to_numpy()
    fit = sm.OLS(known["right"].cast(pl.Float64).to_numpy(), sm.add_constant(aligned)).fit()
    groups = known["cluster"].cast(pl.Int64).to_numpy()
    robust = fit.get_robustcov_results("cluster", groups=groups, use_correction=False)
    se = robust.bse[1] * math.sqrt(12 / 11)
    found = RunTotals.of(_shares(_GAP), [frame]).estimate(_shares(_GAP).measures[0])
    assert found.value == pytest.approx(fit.params[1])
    assert found.high is not None
    assert found.value is not None
    assert found.high - found.value == pytest.approx(2.200985160082949 * se)


@pytest.mark.parametrize("seed", range(5))
def test_a_sum_of_one_ratio_is_that_ratio(seed: int) -> None:
    right, x = _RIGHT.cast(pl.Float64), pl.when(_RIGHT.is_not_null()).then(_ALIGNED)
    plain = _shares(Ratio(right * x, x, scale=2, shift=-1))
    one = _shares(SumOfRatios(((2.0, right * x, x),), -1.0))
    before, after = _random(seed), _random(seed + 100, 0.4)
    pairs = [PairTotals.of(i, iter([before]), iter([after])) for i in (plain, one)]
    changes = [found.change(i.measures[0]) for found, i in zip(pairs, (plain, one), strict=True)]
    estimates = [RunTotals.of(i, [before]).estimate(i.measures[0]) for i in (plain, one)]
    for ratio, summed in (changes, estimates):
        for name in ("low", "high", "n", "clusters", "p"):
            assert getattr(summed, name) == pytest.approx(getattr(ratio, name))


@pytest.mark.parametrize("seed", range(5))
def test_the_change_of_a_sum_of_ratios_is_the_difference_with_the_jackknife_s_error(
    seed: int,
) -> None:
    """Leaving out one cluster at a time gives the same standard error up to terms of order 1/G."""
    before, after = _random(seed), _random(seed + 100, 0.4)
    shares, clusters = _shares(_BOTH), [f"{number}" for number in range(12)]
    found = PairTotals.of(shares, iter([before]), iter([after])).change(shares.measures[0])
    sides = [_value(shares, frame) for frame in (before, after)]
    assert [found.before, found.after] == pytest.approx(sides)
    assert found.difference == pytest.approx(sides[1] - sides[0])
    left = []
    for out in clusters:
        values = [_value(shares, f.filter(pl.col("cluster") != out)) for f in (before, after)]
        left.append(values[1] - values[0])
    jackknife = math.sqrt(11 / 12 * float(((np.array(left) - np.mean(left)) ** 2).sum()))
    assert found.se == pytest.approx(jackknife, rel=0.1)
    assert (found.n, found.clusters) == (60, 12)


@pytest.mark.parametrize("seed", range(3))
def test_the_p_of_a_ratio_of_rows_is_that_of_their_mean_by_sign_flips(seed: int) -> None:
    """One below the line of every row: the share of a cluster is the sum of its own differences, so
    that both flip the same numbers. t would have another p."""
    right = _RIGHT.cast(pl.Float64)
    ratio, mean = _shares(Ratio(right, right * 0 + 1)), _shares(Mean(right))
    before, after = _random(seed), _random(seed + 100, 0.55)
    found = [
        PairTotals.of(one, iter([before]), iter([after])).change(one.measures[0])
        for one in (ratio, mean)
    ]
    assert found[0].difference == pytest.approx(found[1].difference)
    assert found[0].p == found[1].p


def test_linearized_numbers_have_the_mean_of_the_sum_and_none_apart_from_it_where_all_agree() -> (
    None
):
    def table(y: list[float], x: list[float]) -> np.ndarray:
        return np.column_stack([x, y, x, y, x])

    # R = 2/4, so 1/2 + 2·(2 − 3/2)/4 = 3/4 and 1/2 + 2·(0 − 1/2)/4 = 1/4.
    assert linearized([(1.0, table([2, 0], [3, 1]))]) == pytest.approx([0.75, 0.25])
    # Half of what is decided is biased in each cluster, however many were decided.
    assert linearized([(2.0, table([1, 2, 3], [2, 4, 6]))], -1.0).tolist() == [0.0, 0.0, 0.0]


def test_a_reader_that_is_always_right_has_no_spread_in_a_sum_of_ratios() -> None:
    rows = [(cluster, aligned, aligned) for cluster in "abc" for aligned in (True, False)]
    found = RunTotals.of(_shares(_BOTH), [_frame(rows)]).estimate(_shares(_BOTH).measures[0])
    assert (found.value, found.undefined) == (0.0, NO_SPREAD)


def test_a_sum_is_undefined_where_one_of_its_ratios_is() -> None:
    rows = [(cluster, True, True) for cluster in "abc"]
    found = RunTotals.of(_shares(_GAP), [_frame(rows)]).estimate(_shares(_GAP).measures[0])
    assert (found.value, found.undefined) == (None, "no rows: 0/0")
