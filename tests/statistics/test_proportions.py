"""Shares and zero events, against statsmodels and each other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

from evenhand.core.errors import Undefined, UserError
from evenhand.statistics.proportions import clopper_pearson, wilson, zero_event_upper
from tests.errors import raises_naming

shares = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(max_examples=60)
@given(share=shares, confidence=st.sampled_from([0.8, 0.95, 0.99]))
def test_both_intervals_agree_with_statsmodels_and_mirror_the_complement(
    share: tuple[int, int], confidence: float
) -> None:
    events, n = share
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        found = ours(events, n, confidence)
        theirs = proportion_confint(events, n, 1 - confidence, method)
        assert (found.low, found.high) == pytest.approx(theirs, abs=1e-9)
        assert 0 <= found.low <= found.estimate <= found.high <= 1
        other = ours(n - events, n, confidence)
        assert other.low == pytest.approx(1 - found.high, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 30, 1_100, 58_492])
def test_the_bound_for_no_events_is_the_one_sided_exact_interval(n: int) -> None:
    assert zero_event_upper(n) == pytest.approx(clopper_pearson(0, n, 0.9).high, rel=1e-9)
    assert (1 - zero_event_upper(n)) ** n == pytest.approx(0.05)


def test_no_trials_are_undefined_and_more_events_than_trials_an_error() -> None:
    for compute in (wilson, clopper_pearson):
        with raises_naming(Undefined, "0/0"):
            compute(0, 0)
        with pytest.raises(UserError):
            compute(3, 2)
        with pytest.raises(UserError):
            compute(-1, 2)
    with pytest.raises(Undefined):
        zero_event_upper(0)


@pytest.mark.parametrize("confidence", [1 - 2**-53, 1 - 1e-15])
def test_wilson_stays_a_number_as_near_to_certainty_as_a_float_comes(confidence: float) -> None:
    found = wilson(3, 10, confidence)
    z = norm.isf((1 - confidence) / 2)
    for end in (found.low, found.high):  # where the score test stops rejecting
        assert abs(0.3 - end) == pytest.approx(z * (end * (1 - end) / 10) ** 0.5, rel=1e-6)
    assert 0 < found.low < 0.3 < found.high < 1
