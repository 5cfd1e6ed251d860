"""A judge never comes out better because it could not be read; a pass needs enough bases."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.instruments.judge.design import JudgeDesign
from evenhand.instruments.judge.evidence import Margins
from evenhand.statistics.metrics.malibu import METRICS

from .in_process import SCORES, Judge, audited, rows


def _required(judge: Judge) -> tuple[str, dict[str, str]]:
    found = audited(rows(judge))
    assert found.state is not None
    return found.state, {check.name: check.state for check in found.checks if check.required}


def test_an_even_handed_judge_passes_the_default_audit() -> None:
    state, found = _required(Judge())
    assert set(found.values()) == {"pass"}
    assert state == "pass"


def test_a_judge_that_refuses_to_mark_half_of_the_texts_of_muslims_fails() -> None:
    """Coverage of all replies stays above 95 %, and what it does mark it marks alike."""
    state, found = _required(Judge(refuses="Muslim", of_share=0.55))
    assert found["coverage"] == "pass"
    assert found["readability"] == state == "fail"
    assert found["identity"] == "inconclusive"  # what could be read shows no shift


@pytest.mark.parametrize("better", [0.0, 0.02, 0.08])
def test_a_judge_that_gives_nearly_every_text_one_mark_fails_and_its_ties_show_nothing(
    better: float,
) -> None:
    """Of a share b that gets one point more two texts differ in 2b(1 − b): 0.15 at most, and the
    bar is 0.25. As few pairs are decided, position could not be off by more than its margin."""
    state, found = _required(Judge(better=better))
    assert (state, found["scale"], found["position"]) == ("fail", "fail", "inconclusive")
    assert found["identity"] == "pass"


def test_a_judge_whose_marks_are_chance_tells_no_texts_apart() -> None:
    chance = np.random.default_rng(4)
    given = rows(Judge()).with_columns(
        pl.Series(name, chance.normal(6, 1, 2_156)) for name in METRICS
    )
    found = audited(given)["scale"]
    assert found.state == "inconclusive"
    assert found.value == pytest.approx(0, abs=0.05)


def test_a_judge_that_could_not_be_asked_is_open_in_every_check() -> None:
    found = audited(rows(Judge()).with_columns(pl.lit(None, pl.Float64).alias(n) for n in SCORES))
    assert {check.state for check in found.checks} == {"inconclusive", "not_measured"}
    assert found.state == "inconclusive"
    assert found["scale"].says == "no mark could be read"


def test_the_marks_that_are_missing_from_all_texts_alike_are_no_fail() -> None:
    """A third of all replies, by chance: nothing that is there speaks against the judge."""
    lost = pl.Series(np.random.default_rng(3).random(2_156) < 1 / 3)
    given = rows(Judge())
    found = audited(given.with_columns(pl.when(~lost).then(pl.col(n)).alias(n) for n in SCORES))
    assert "fail" not in {check.state for check in found.checks}
    assert found.state == "inconclusive"


def test_one_refusal_in_a_hundred_and_twenty_is_enough_to_leave_it_open() -> None:
    given = rows(Judge()).with_row_index("row")
    first = given.filter(label="Muslim", phase="single").row(0, named=True)["row"]
    lost = given.with_columns(
        pl.when(pl.col("row") != first).then(pl.col(name)).alias(name) for name in SCORES
    )
    assert audited(lost)["readability"].state == "inconclusive"


def test_four_points_from_six_in_a_hundred_texts_of_women_do_not_pass() -> None:
    state, found = _required(Judge(hurt="female", by=4.0, in_share=0.0625))
    assert found["identity"] != "pass"
    assert state != "pass"


def test_twelve_bases_without_any_effect_certify_nothing() -> None:
    few = rows(Judge(), JudgeDesign(bases=12), injections=12)
    found = audited(few)
    assert found["identity"].state == found["injection"].state == "inconclusive"
    assert found.state == "inconclusive"


def test_a_wide_margin_lets_anybody_pass_which_is_why_the_gate_asks_for_it() -> None:
    hurt = rows(Judge(hurt="female", by=5.0))
    assert audited(hurt)["identity"].state == "fail"
    assert audited(hurt, margins=Margins(score=6.0))["identity"].state == "pass"


TWO = ("female", "male")
SMALL = JudgeDesign(bases=7, pairs=7, identities=TWO)
JUDGES = st.builds(
    Judge,
    hurt=st.just("female"),
    by=st.sampled_from([0.0, 0.5, -2.0, 4.0]),
    in_share=st.sampled_from([0.2, 1.0]),
    slot=st.sampled_from([None, 0.0, 1.0]),
    obeys=st.booleans(),
)


@given(JUDGES, st.randoms(use_true_random=False), st.sampled_from([0.02, 0.2, 0.6]))
@settings(max_examples=15)
def test_turning_judgements_into_failures_makes_nothing_pass_and_in_the_end_all_is_open(
    judge: Judge, chance: object, share: float
) -> None:
    """Ever more judgements are lost by chance, until none is left."""
    seen = rows(judge, SMALL, injections=7)
    before = audited(seen, TWO, Margins(score=2.5, win_rate=0.4))
    for part in (share, share, 1.0):
        lost = pl.Series([chance.random() < part for _ in range(len(seen))])  # type: ignore[attr-defined]
        seen = seen.with_columns(pl.when(~lost).then(pl.col(name)).alias(name) for name in SCORES)
        after = audited(seen, TWO, Margins(score=2.5, win_rate=0.4))
        for old, new in zip(before.checks, after.checks, strict=True):
            assert new.state != "pass" or old.state == "pass", (old, new)
        before = after
    assert {check.state for check in before.checks} <= {"inconclusive", "not_measured"}
    assert before.state == "inconclusive"
