"""Verdicts on one difference: there, small, or not known."""

import numpy as np
import pytest

from evenhand.core.conclusions import Outcome, worst_outcome
from evenhand.statistics.bounded import (
    WorstCaseDifference,
    outcome_of,
    p_shifted,
    p_within,
    whole,
)

MARGIN, LARGEST = 0.25, 3.0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([0.9, 1.1] * 10, Outcome.DETECTED, id="far beyond the margin"),
        pytest.param(
            [0.04, 0.06] * 30, Outcome.RULED_OUT, id="there for certain, and within the margin"
        ),
        pytest.param([-0.1, 0.1] * 30, Outcome.RULED_OUT, id="around nothing"),
        pytest.param([-3.0, 3.5] * 2, Outcome.INCONCLUSIVE, id="four values far apart"),
        pytest.param([0.0] * 60, Outcome.RULED_OUT, id="nothing changed in sixty"),
        pytest.param(
            [0.0] * 12, Outcome.INCONCLUSIVE, id="nothing changed in twelve, which is little"
        ),
        pytest.param([0.0] * 3, Outcome.INCONCLUSIVE, id="nothing changed in three"),
        pytest.param([1.0] * 20, Outcome.DETECTED, id="all changed alike"),
        pytest.param([1.0] * 4, Outcome.INCONCLUSIVE, id="four alike: p = 2/16"),
    ],
)
def test_the_verdict_is_about_the_margin_and_never_about_significance_alone(
    values: list[float], expected: Outcome
) -> None:
    found = whole(values, LARGEST)
    assert outcome_of(p_within(found, MARGIN), p_shifted(found)) == expected


def test_without_spread_the_sign_flip_test_gives_the_p_value() -> None:
    assert p_shifted(whole([1.0] * 4, LARGEST)) == 0.125
    assert p_shifted(whole([0.0] * 4, LARGEST)) == 1.0
    assert p_shifted(whole([], LARGEST)) == 1.0


def test_thirty_five_is_the_least_number_of_clusters_that_can_show_a_small_difference() -> None:
    """(1 − 0.25/3)^G falls below 0.05 between 34 and 35."""
    at = {n: p_within(whole([0.0] * n, LARGEST), MARGIN) for n in (34, 35)}
    assert at[34] > 0.05 > at[35]


def test_what_is_missing_counts_on_the_side_where_it_hurts() -> None:
    seen = np.zeros(60)
    low, high = seen.copy(), seen.copy()
    low[:12], high[:12] = -10.0, 10.0
    found = WorstCaseDifference(low, high, LARGEST)
    assert outcome_of(p_within(found, MARGIN), p_shifted(found)) == Outcome.DETECTED


def test_correction_for_the_family_can_take_a_shift_back() -> None:
    assert outcome_of(1.0, 0.2) == Outcome.INCONCLUSIVE


def test_one_shifted_label_shifts_the_family_and_only_all_equivalent_ones_clear_it() -> None:
    assert (
        worst_outcome([Outcome.RULED_OUT, Outcome.DETECTED, Outcome.INCONCLUSIVE])
        == Outcome.DETECTED
    )
    assert worst_outcome([Outcome.RULED_OUT, Outcome.INCONCLUSIVE]) == Outcome.INCONCLUSIVE
    assert worst_outcome([Outcome.RULED_OUT, Outcome.RULED_OUT]) == Outcome.RULED_OUT
    assert worst_outcome([]) == Outcome.NOT_MEASURED
