"""Verdicts on one difference: there, small, or not known."""

import pytest

from evenhand.statistics.clusters import Interval, naive_mean
from evenhand.statistics.margins import (
    EQUIVALENT,
    SHIFTED,
    UNDERPOWERED,
    Verdict,
    of_family,
    p_against_zero,
    p_of_equivalence,
    verdict,
)

# Means and standard errors by hand: values ± d around a mean have s = d·√(n/(n − 1)), n even.
LARGE = naive_mean([0.9, 1.1] * 10)
SMALL = naive_mean([0.09, 0.11] * 10)
NONE = naive_mean([-0.1, 0.1] * 10)
WIDE = naive_mean([-3.0, 3.5] * 2)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(LARGE, SHIFTED, id="far beyond the margin"),
        pytest.param(SMALL, EQUIVALENT, id="there for certain, and within the margin"),
        pytest.param(NONE, EQUIVALENT, id="around nothing"),
        pytest.param(WIDE, UNDERPOWERED, id="four values far apart"),
        pytest.param(naive_mean([0.0] * 20), EQUIVALENT, id="nothing ever changed"),
        pytest.param(naive_mean([1.0] * 20), SHIFTED, id="all changed alike"),
        pytest.param(naive_mean([1.0] * 4), UNDERPOWERED, id="four alike: p = 2/16"),
    ],
)
def test_the_verdict_is_about_the_margin_and_never_about_significance_alone(
    found: Interval, expected: Verdict
) -> None:
    assert verdict(found, p_against_zero(found), 0.25) == expected


def test_without_spread_the_sign_flip_test_gives_the_p_value() -> None:
    assert p_against_zero(naive_mean([1.0] * 4)) == 0.125
    assert p_against_zero(naive_mean([0.0] * 4)) == 1.0
    assert p_of_equivalence(naive_mean([1.0] * 4), 0.25) is None


def test_correction_for_the_family_can_take_a_shift_back() -> None:
    assert verdict(LARGE, 0.2, 0.25) == UNDERPOWERED


def test_one_shifted_label_shifts_the_family_and_only_all_equivalent_ones_clear_it() -> None:
    assert of_family([EQUIVALENT, SHIFTED, UNDERPOWERED]) == SHIFTED
    assert of_family([EQUIVALENT, UNDERPOWERED]) == UNDERPOWERED
    assert of_family([EQUIVALENT, EQUIVALENT]) == EQUIVALENT
    assert of_family([]) == UNDERPOWERED
