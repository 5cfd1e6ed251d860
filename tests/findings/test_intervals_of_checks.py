"""The interval of a check of an audit is the one that decides it, missing answers included."""

import polars as pl
import pytest

from evenhand.findings.audit import check_of
from evenhand.findings.estimates import Bounds, Estimate
from evenhand.findings.measures import AuditBound, Measure
from evenhand.findings.summed_statistics import Share

ALARMS = Measure(
    name="alarms", label="alarms", statistic=Share(pl.col("x")), within=(0, 1), better="lower",
    allowed=AuditBound(at_most=0.1),
)  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "state", "high"), [(0.05, "pass", 0.08), (0.09, "inconclusive", 0.12)]
)
def test_missing_answers_widen_the_interval_that_a_check_prints(
    lost: float, state: str, high: float
) -> None:
    """The CI ends at 0.08, and the missing answers could raise the share from 0.05 to `lost`."""
    bounds = Bounds(missing=4, low=0.05, high=lost)
    estimate = Estimate(name="alarms", value=0.05, low=0.02, high=0.08, n=100, bounds=bounds)
    check = check_of(ALARMS, estimate)
    assert check.state == state
    assert check.low == 0.02
    assert check.high == pytest.approx(high)
    assert check.high is not None
    assert (check.high < 0.1) is (state == "pass")


def test_without_missing_answers_it_is_the_interval_of_the_estimate() -> None:
    check = check_of(ALARMS, Estimate(name="alarms", value=0.05, low=0.02, high=0.08, n=100))
    assert (check.low, check.high, check.state) == (0.02, 0.08, "pass")
