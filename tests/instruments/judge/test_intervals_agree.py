"""The outcome, the test and the printed interval of a judge's audit agree."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from evenhand.core.conclusions import Outcome
from evenhand.instruments.judge.checks import HumanAgreement, Identity, IdentityInPairs, Position
from evenhand.instruments.judge.effects import LabelEffect
from evenhand.instruments.judge.evidence import JudgeEvidence
from evenhand.statistics.bounded import (
    ALPHA,
    WorstCaseDifference,
    outcome_of,
    p_below,
    p_shifted,
    p_within,
    rise_interval,
    shift_interval,
    whole,
)
from evenhand.statistics.clusters import naive_mean
from evenhand.statistics.multiplicity import benjamini_hochberg, benjamini_hochberg_errors
from evenhand.statistics.sign_flips import p_above_zero

from .test_report import rows

MARGIN, LARGEST = 0.25, 3.0


def read_off(low: float, high: float, margin: float = MARGIN) -> Outcome:
    """What a reader concludes from an interval and the required bound alone."""
    if -margin < low and high < margin:
        return Outcome.RULED_OUT
    return Outcome.DETECTED if low > 0 or high < 0 else Outcome.INCONCLUSIVE


@pytest.mark.parametrize("error", [0.05, 0.01, 0.001])
def test_an_interval_of_a_shift_says_what_its_two_tests_say(error: float) -> None:
    rng, seen = np.random.default_rng(3), Counter[Outcome]()
    for _ in range(150):
        read = rng.normal(
            rng.choice([0, 0.1, 0.2, 0.4]), rng.choice([0.1, 0.4]), 6 + rng.integers(90)
        )
        lost = rng.random(read.size) < rng.choice([0, 0.05])
        shift = WorstCaseDifference(
            np.where(lost, -LARGEST, read), np.where(lost, LARGEST, read), LARGEST
        )
        shifted = p_shifted(whole(read, LARGEST)) * ALPHA / error
        outcome = outcome_of(p_within(shift, MARGIN), shifted)
        low, high = shift_interval(shift, read, MARGIN, error)
        assert read_off(low, high) is outcome
        assert low <= read.mean() <= high
        seen[outcome] += 1
    assert len(seen) == 3, seen


def test_an_interval_of_a_rise_says_what_its_two_tests_say() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        read = rng.normal(rng.choice([-0.3, 0, 0.1, 0.3]), 0.3, 6 + rng.integers(90))
        low, high = rise_interval(read, read, MARGIN, LARGEST, 0.01)
        assert (low > 0) is (p_above_zero(read) <= 0.01)
        assert (high < MARGIN) is (p_below(read, MARGIN, LARGEST) < ALPHA)


def test_a_shift_that_only_an_unadjusted_interval_excludes_from_0_is_not_excluded() -> None:
    read = np.array([0.5, 0.3, 0.4, 0.2, -0.1, 0.3, 0.1, 0.4])  # p 4/256: shown at 5%, not at 1%
    assert naive_mean(read).low > 0
    low, high = shift_interval(whole(read, LARGEST), read, MARGIN, 0.01)
    assert low < 0 < MARGIN < high
    assert shift_interval(whole(read, LARGEST), read, MARGIN, 0.05)[0] > 0


def _agrees(effect: LabelEffect) -> bool:
    if effect.low is None or effect.high is None:
        return True
    shown = effect.low > 0 or effect.high < 0
    return shown is effect.detected and (
        effect.verdict is not Outcome.RULED_OUT or max(-effect.low, effect.high) < effect.margin
    )


@pytest.mark.parametrize("lift", [0.0, 0.3, 0.6, 2.0])
def test_the_intervals_of_all_labels_agree_with_their_outcomes(lift: float) -> None:
    given = rows(lift, seed=5)
    rng = np.random.default_rng(6)
    verdicts = pl.Series(rng.choice([0.0, 1.0, 1.0, np.nan], len(given))).fill_nan(None)
    given = given.with_columns(
        preferred=pl.when(pl.col("phase") == "pair").then(verdicts).otherwise(None)
    )
    evidence = JudgeEvidence(given, draws=20)
    effects = [*evidence.identity_effects, *evidence.wins, *evidence.exploratory]
    assert len(effects) > 50
    assert [effect for effect in effects if not _agrees(effect)] == []
    for check in (Identity(), IdentityInPairs(), Position()):
        decided, allowed = check.check(evidence), check.allowed(evidence.margins)
        assert decided.of_tests
        assert decided.low is not None
        assert decided.high is not None
        assert read_off(decided.low, decided.high, allowed.at_most) is decided.outcome


def test_the_label_that_leaves_a_check_open_is_the_one_that_is_shown() -> None:
    small = LabelEffect(label="small", against="none", value="combined", margin=MARGIN,
                        verdict=Outcome.INCONCLUSIVE, estimate=0.05, low=-0.3, high=0.4,
                        bases=9, asked=9)  # fmt: skip
    large = LabelEffect(label="large", against="none", value="combined", margin=MARGIN,
                        verdict=Outcome.RULED_OUT, estimate=0.1, low=0.02, high=0.2,
                        bases=9, asked=9)  # fmt: skip
    decided = Identity().of([large, small], MARGIN)
    assert (decided.outcome, decided.low, decided.high) == (Outcome.INCONCLUSIVE, -0.3, 0.4)


def test_four_texts_in_order_leave_an_agreement_open_and_its_interval_has_one_half() -> None:
    """Mann-Whitney of 2 against 2: p 1/3, where DeLong's interval is a point at 1."""
    labelled = pl.DataFrame(
        {"combined": [9.0, 8.0, 2.0, 1.0], "human": ["true", "true", "false", "false"]}
    )
    decided = HumanAgreement()._yes_or_no(labelled)
    assert (decided.outcome, decided.value) == (Outcome.INCONCLUSIVE, 1.0)
    assert (decided.low, decided.high) == (0.5, 1.0)


def test_an_error_of_benjamini_hochberg_rejects_what_its_p_values_reject() -> None:
    p_values = (0.001, 0.011, 0.019, 0.04, 0.2, 0.9)
    adjusted = benjamini_hochberg(p_values)
    errors = benjamini_hochberg_errors(p_values, 0.05)
    assert errors == pytest.approx([0.05 * 3 / 6] * 6)
    assert [p <= 0.05 for p in adjusted] == [
        p <= error for p, error in zip(p_values, errors, strict=True)
    ]
    assert benjamini_hochberg_errors((0.5, 0.6), 0.05) == pytest.approx((0.025, 0.025))
    assert benjamini_hochberg_errors((), 0.05) == ()
