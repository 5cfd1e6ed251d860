"""How numbers are written: what is not 0 does not look like 0, too little not like enough."""

import polars as pl
import pytest

from evenhand.findings.estimates import COVERAGE_FLOOR, Coverage, Estimate
from evenhand.findings.measures import Measure
from evenhand.findings.summed_statistics import Mean
from evenhand.views import numbers

SCORE = Measure(name="s", label="score", statistic=Mean(pl.col("s")), better="zero", within=(-1, 1))


def test_an_interval_that_excludes_0_is_not_written_with_a_0() -> None:
    found = Estimate(name="s", value=0.03, low=0.0017, high=0.06, n=40, clusters=10, undefined=None)
    low, high = numbers.interval(found, SCORE).split(" to ")
    assert (float(low), float(high)) == (0.002, 0.06)


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.0, 0.0), (-0.0004, -0.0004), (1e-17, 0.0), (0.006, 0.01), (-0.25, -0.25)],
)
def test_only_0_and_rounding_errors_are_written_as_0(number: float, written: float) -> None:
    assert float(numbers.signed(number, SCORE)) == written
    assert float(numbers.value(number, SCORE)) == written


def test_a_coverage_below_the_floor_is_not_written_as_the_floor() -> None:
    seen = Coverage(n=10_000, scored=9_496, by_reason={"unreadable": 504})
    assert seen.below_floor
    assert float(seen.percent.rstrip("%")) < 100 * COVERAGE_FLOOR
    assert Coverage(n=1_000, scored=950, by_reason={}).percent == "95.0%"
