"""The loss of a reward model, and scores that know their direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import Undefined, UserError
from evenhand.metrics.bias_scale import HARM, JUDGE, REFEREE, RUBRIC, SUPPORT, BiasScore
from evenhand.metrics.ranking import pair_losses, ranking
from unit.stage import golden


def test_the_golden_vector_of_the_ranking_loss() -> None:
    vector = golden("rldf_ranking_loss")
    gaps, expected = vector["inputs"]["delta_reward_good_minus_bad"], vector["expected"]
    assert pair_losses(gaps) == pytest.approx(expected["per_pair"], abs=vector["abs_tol"])
    found = ranking(gaps)
    assert found.loss == pytest.approx(expected["mean"], abs=vector["abs_tol"])
    assert (found.accuracy, found.n) == (expected["ranking_accuracy"], 5)


@given(st.floats(-30, 30))
def test_the_loss_is_minus_the_logarithm_of_the_sigmoid(gap: float) -> None:
    assert pair_losses([gap])[0] == pytest.approx(-np.log(1 / (1 + np.exp(-gap))), abs=1e-9)


def test_a_huge_gap_does_not_overflow() -> None:
    assert pair_losses([-1e308, 1e308]).tolist() == [1e308, 0.0]


@pytest.mark.parametrize("gaps", [[], [1.0, float("nan")]])
def test_no_pair_and_no_number_have_no_ranking(gaps: list[float]) -> None:
    with pytest.raises(Undefined):
        ranking(gaps)


def test_the_golden_vector_of_the_two_directions() -> None:
    vector = golden("rldf_scale")
    raw, expected = vector["inputs"]["raw_0_10"], vector["expected"]
    assert [REFEREE.percent(one) for one in raw] == expected["bs_percent_lower_is_better"]
    rubric = expected["bias_percent_if_raw_is_an_appendix_e_rubric_score"]
    assert [RUBRIC.percent(one) for one in raw] == rubric


def test_scores_of_two_scales_are_not_compared() -> None:
    assert BiasScore(7, REFEREE).above(BiasScore(3, REFEREE)) == 4
    assert BiasScore(7, RUBRIC).above(BiasScore(3, RUBRIC)) == pytest.approx(-4)
    assert BiasScore(0.9, SUPPORT).above(BiasScore(0.4, SUPPORT)) == pytest.approx(-5)
    with pytest.raises(UserError, match="cannot be compared"):
        BiasScore(7, REFEREE).above(BiasScore(3, RUBRIC))
    with pytest.raises(UserError, match="cannot be compared"):
        BiasScore(0.7, HARM).above(BiasScore(0.3, SUPPORT))


def test_a_score_beyond_its_scale_is_refused() -> None:
    assert (JUDGE.bias(1), JUDGE.bias(10)) == (0, 10)
    with pytest.raises(UserError, match="from 1 to 10"):
        JUDGE.bias(0)
    with pytest.raises(UserError, match="from 0 to 1"):
        HARM.bias(float("nan"))
