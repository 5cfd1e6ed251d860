"""The change of a share of weights, by hand, against that of a share, and by simulation."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from evenhand.findings.change_test import ChangeTest
from evenhand.findings.estimates import Change
from evenhand.findings.measures import Measure, Statistic
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.summed_statistics import Ratio, Share
from evenhand.statistics.sign_flips import p_two_sided

_YES, _WEIGHT = pl.col("yes").cast(pl.Float64), pl.col("weight")
_BY_WEIGHT = Measure(name="m", label="m", statistic=Ratio(_YES * _WEIGHT, _WEIGHT), within=(0, 1))
_WEIGHTS = np.array([2.0, 8.0, 8.0, 10.0, 24.0, 50.0])  # quantiles of those of BBQ's templates


def _one(statistic: Statistic) -> ScoringSpec:
    class One(ScoringSpec):
        name = "one"
        clusters = "clusters"
        columns = ()
        facts: ClassVar = {}
        measures = (Measure(name="m", label="m", statistic=statistic, within=(0, 1)),)

    return One()


def _frame(yes: Sequence[int], weights: Sequence[float]) -> pl.DataFrame:
    """Two rows to a cluster."""
    return pl.DataFrame({"yes": yes, "weight": weights}).with_row_index("item_id").with_columns(
        pl.col("item_id").cast(pl.String),
        cluster=(pl.col("item_id") // 2).cast(pl.String),
        state=pl.lit(SCORED),
    )  # fmt: skip


def _change(statistic: Statistic, before: pl.DataFrame, after: pl.DataFrame) -> Change:
    one = _one(statistic)
    return PairTotals.of(one, iter([before]), iter([after])).change(one.measures[0])


_OLD, _NEW = [1, 0, 0, 0, 1, 1, 0, 0, 1, 0], [1, 1, 0, 1, 1, 0, 0, 0, 1, 1]


def test_the_change_of_a_share_of_equal_weights_is_that_of_a_share() -> None:
    before, after = (_frame(yes, [3.0] * 10) for yes in (_OLD, _NEW))
    weighed = _change(Ratio(_YES * _WEIGHT, _WEIGHT), before, after)
    plain = _change(Share(_YES), before, after)
    for name in ("before", "after", "difference", "low", "high", "se", "p", "n", "clusters"):
        assert getattr(weighed, name) == pytest.approx(getattr(plain, name))


def test_the_change_of_a_share_of_weights_is_that_of_its_rows_own_changes() -> None:
    """Rows 2, 4 and 10 become yes and row 6 no, so the clusters of weights 1, 1, 2, 2 and 4 move by
    1, 1, −2, 0 and 4 of 2, 2, 4, 4 and 8: 4/20 in all. Linearized, 1/5 + 5·(moved − x/5)/20."""
    weights = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0]
    found = _change(Ratio(_YES * _WEIGHT, _WEIGHT), _frame(_OLD, weights), _frame(_NEW, weights))
    moved, x = np.array([1.0, 1, -2, 0, 4]), np.array([2.0, 2, 4, 4, 8])
    assert found.difference == found.effect == 4 / 20
    assert (found.n, found.clusters) == (10, 5)
    assert found.p == p_two_sided(0.2 + 5 * (moved - x / 5) / 20)


def test_a_rare_change_of_a_share_of_weights_is_covered_from_both_sides() -> None:
    """25 templates of 4 rows that weigh as BBQ's do; 3 rows in 100 become yes and none no: t lies
    below the truth in more than a tenth of 300 draws."""
    rng, true, misses = np.random.default_rng(4), 0.03, np.zeros(2)
    four, nothing = np.full(25, 4.0), np.zeros(25)
    parts = [f"{part}0{side}" for side in ("", ":after") for part in ("n", "y", "x", "ay", "ax")]
    for _ in range(300):
        weights = rng.choice(_WEIGHTS, 25)
        x, y = 4 * weights, rng.binomial(4, true, 25) * weights
        columns = (four, nothing, x, nothing, x, four, y, x, y, x, nothing)
        sums = {f"m:{part}": one for part, one in zip([*parts, "m"], columns, strict=True)}
        frame = pl.DataFrame({"cluster": np.arange(25), **sums})
        pair = _BY_WEIGHT.statistic.filled_pairs(_BY_WEIGHT, frame, ["cluster"])[0]
        assert pair is not None
        low, high = ChangeTest.of(_BY_WEIGHT, [pair]).interval(0.05)
        misses += high < true, low > true
    assert (misses / 300).max() <= 0.04
