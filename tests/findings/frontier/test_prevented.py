"""What one harm less costs, by hand, and where there is no such number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import Undefined
from evenhand.findings.item_cost import cost_per_prevented, counted_harm
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bold.instrument import Bold
from evenhand.instruments.holisticbias.instrument import HolisticBias
from evenhand.statistics.sign_flips import sign_flip_without_spread
from tests.errors import raises_naming
from tests.statistics.flips import p_of_all_patterns

TWELVE = range(12)


def test_two_calls_more_for_every_second_answer_prevented_are_four_calls_each() -> None:
    found = cost_per_prevented([2.0] * 12, [1.0, 0.0] * 6, TWELVE)
    assert found.estimate == pytest.approx(4.0)
    # A draw of 12 templates with k prevented costs 24/k. P(k ≤ 2) = .0193 and P(k ≤ 3) = .0730 for
    # Binomial(12, 1/2), so the 2.5th percentile is k = 3 and, by symmetry, the 97.5th is k = 9.
    assert found.low == pytest.approx(24 / 9)
    assert found.high == pytest.approx(24 / 3)
    assert (found.n, found.clusters) == (12, 12)


def test_a_draw_that_prevents_nothing_is_no_division_by_zero() -> None:
    """5 of 12 templates: one draw in 640 has none of them, and the upper end is still a number."""
    found = cost_per_prevented([1.0] * 12, [1.0] * 5 + [0.0] * 7, TWELVE)
    assert found.estimate == pytest.approx(12 / 5)
    low, estimate, high = found.low or 0.0, found.estimate or 0.0, found.high or math.inf
    assert 0.0 < low < estimate < high < math.inf


@pytest.mark.parametrize(
    ("extra", "prevented", "why"),
    [
        pytest.param([2.0] * 12, [0.0] * 12, "none prevented", id="nothing-changed"),
        pytest.param([2.0] * 12, [-1.0, 0.0] * 6, "none prevented", id="new-harms"),
        pytest.param([2.0] * 12, [1.0] + [0.0] * 11, "prevent any", id="one-of-12"),
        # 0.75 ± 3.18 · 0.25 reaches 0, though only one draw in 256 prevents nothing.
        pytest.param([2.0] * 4, [1.0] * 3 + [0.0], "prevent any", id="few-templates"),
        pytest.param([0.0] * 12, [1.0] * 12, "no extra cost", id="for-nothing"),
        pytest.param([-1.0] * 12, [1.0] * 12, "no extra cost", id="cheaper"),
        pytest.param([9.0] + [-0.5] * 11, [1.0] * 12, "no extra cost", id="cost-not-shown"),
    ],
)
def test_a_cost_that_cannot_be_defended_is_not_given(
    extra: list[float], prevented: list[float], why: str
) -> None:
    with raises_naming(Undefined, why):
        cost_per_prevented(extra, prevented, range(len(extra)))


def test_the_same_data_give_the_same_interval() -> None:
    data = ([3.0, 1.0, 2.0] * 8, [1.0, 0.0, 1.0] * 8, [n // 2 for n in range(24)])
    assert cost_per_prevented(*data) == cost_per_prevented(*data)


@given(st.integers(2, 18), st.sampled_from([-1.0, -0.25, 0.5]))
def test_sign_flips_without_spread_are_those_of_the_full_test(clusters: int, by: float) -> None:
    full = p_of_all_patterns([by] * clusters)
    assert sign_flip_without_spread(by, clusters) == pytest.approx(full)


def test_no_change_at_all_is_evidence_of_nothing() -> None:
    assert sign_flip_without_spread(0.0, 40) == 1.0


def test_a_mean_score_is_no_count_of_events_that_could_be_prevented() -> None:
    counted = counted_harm(Bbq())
    assert counted is not None
    assert counted.name == "stereotyped_rate"
    assert counted_harm(Bold()) is None
    assert counted_harm(HolisticBias()) is None
