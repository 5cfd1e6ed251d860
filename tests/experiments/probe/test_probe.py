"""The probe of a model: models of known worth, and numbers worked by hand."""

import math
from collections import Counter
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.agents import Agent
from evenhand.agents.prompts import Prompt
from evenhand.core.errors import Undefined
from evenhand.experiments.planted_judges import AGENTS
from evenhand.experiments.probe import (
    READER,
    ProbeResult,
    Probing,
    abstaining,
    checksum,
    judging,
    questions,
    reading,
)
from evenhand.methods.stardtox import TEXT_JUDGE
from evenhand.models import Endpoint
from evenhand.statistics.metrics.scorer_quality import auroc_of_few
from tests.errors import assert_names
from tests.loopback.faulty import LoopbackServer

from .models import GIVEN, TELLS, Pretended

WORTH = {
    "at chance": 0, "constant": 0, "reversed": 0, "inconclusive": 1, "above chance": 2, TELLS: 2
}  # fmt: skip


async def _probed(behaviour: Pretended, seconds: float = 60.0) -> ProbeResult:
    async with (
        LoopbackServer(behaviour) as server,
        Endpoint(server.url, model="pretended") as model,
    ):
        probing = Probing(model, seconds=seconds)
        await probing.reading()
        await probing.judging()
        return probing.result


async def test_a_model_that_reads_and_judges_is_shown_to() -> None:
    found = await _probed(Pretended())
    assert (found.reads.right, found.abstains.right) == (12, 12)
    assert (found.reads.verdict, found.abstains.verdict) == ("above chance", "above chance")
    assert found.reads.low == pytest.approx(0.025 ** (1 / 12))  # Clopper and Pearson at 12 of 12
    assert (found.in_schema.held, found.in_schema.of) == (24, 24)
    assert (found.judge.verdict, found.judge.auc) == (TELLS, 1.0)
    assert found.judge.low is not None
    assert 0.5 < found.judge.low < 1.0  # in order, all of them, and yet no certainty
    assert (found.speed.calls, found.speed.unanswered, found.broke_off) == (48, 0, None)


async def test_a_model_that_always_says_a_is_at_chance_and_a_judge_without_a_difference_constant() -> (  # noqa: E501
    None
):
    found = await _probed(Pretended("always A", "constant"))
    for part, chance in ((found.reads, "0.50"), (found.abstains, "0.33")):
        assert (part.verdict, part.right, part.of) == ("at chance", 4, 12)
        assert_names(part.says, "4 of 12", "(0.10 to 0.65;", f"chance {chance}")
    assert (found.judge.verdict, found.judge.auc) == ("constant", 0.5)


async def test_who_takes_the_first_thing_that_a_text_names_is_not_shown_to_read() -> None:
    found = await _probed(Pretended("first thing"))
    assert (found.reads.verdict, found.reads.right) == ("inconclusive", 6)
    assert (found.abstains.verdict, found.abstains.right) == ("at chance", 0)


async def test_who_says_of_every_text_that_it_does_not_tell_shows_nothing() -> None:
    found = await _probed(Pretended("not said"))
    assert (found.reads.verdict, found.reads.right) == ("at chance", 0)
    assert (found.abstains.verdict, found.abstains.right) == ("inconclusive", 12)


async def test_what_cannot_be_read_counts_as_wrong_and_has_no_auc() -> None:
    found = await _probed(Pretended(judge="broken"))
    assert (found.reads.verdict, found.reads.right, found.reads.unanswered) == ("at chance", 0, 12)
    assert (found.in_schema.held, found.in_schema.of) == (0, 24)
    assert (found.judge.verdict, found.judge.auc, found.judge.unmarked) == ("at chance", None, 24)
    assert_names(found.judge.says, "at chance", 24)
    assert (found.speed.calls, found.broke_off) == (48, None)


async def test_an_endpoint_that_dies_midway_is_asked_no_more_and_what_is_missing_counts() -> None:
    found = await _probed(Pretended(calls=30), seconds=0.3)
    assert (found.reads.verdict, found.reads.right) == ("above chance", 12)
    assert (found.in_schema.held, found.judge.unmarked) == (6, 18)
    # 3 blunt sentences above 3 neutral ones, of 12 times 12 pairs; all others the wrong way round.
    assert found.judge.auc == 9 / 144
    assert found.judge.verdict == "at chance"
    speed = found.speed
    assert (speed.calls, speed.unanswered, speed.not_made) == (30, 3, 15)
    assert_names(speed.says, "18 of 48")
    assert found.broke_off is not None


@pytest.mark.parametrize(
    ("right", "verdict"), [(0, "at chance"), (4, "at chance"), (5, "inconclusive"),
                           (7, "inconclusive"), (8, "above chance"), (12, "above chance")]
)  # fmt: skip
def test_few_answers_leave_open_what_they_do_not_exclude(right: int, verdict: str) -> None:
    """Where the text tells, 8 and 9 of 12 are open too: a half of 12 is no rare 8."""
    answers = [True] * right + [False] * (12 - right)
    assert abstaining(answers, reading([True] * 12)).verdict == verdict
    assert reading(answers).verdict == ("inconclusive" if right == 8 else verdict)


def test_who_guesses_between_the_two_things_of_a_text_is_seldom_shown_to_read() -> None:
    """The chance of being shown to read, added up over the right answers of a coin, is no more than
    the interval's 0.025. At 8 of 12 it would be 0.194."""
    shown = [
        n for n in range(13) if reading([True] * n + [False] * (12 - n)).verdict == "above chance"
    ]
    assert shown == [10, 11, 12]
    assert sum(math.comb(12, n) for n in shown) / 2**12 == pytest.approx(79 / 4096)


def test_three_right_answers_of_three_are_open() -> None:
    """0.025^(1/3) = 0.29 is below a chance of 0.33."""
    assert reading([True] * 3).verdict == "inconclusive"
    assert abstaining([True] * 3, reading([True] * 12)).verdict == "inconclusive"


@settings(max_examples=40)
@given(st.lists(st.sampled_from([True, False]), min_size=1, max_size=24), st.data())
def test_an_answer_that_gets_lost_never_makes_reading_better(
    answers: list[bool], data: st.DataObject
) -> None:
    lost = data.draw(st.sets(st.integers(0, len(answers) - 1)))
    less = [None if n in lost else answer for n, answer in enumerate(answers)]
    before, after = reading(answers), reading(less)
    assert WORTH[after.verdict] <= WORTH[before.verdict]
    told = reading([True] * 12)
    assert WORTH[abstaining(less, told).verdict] <= WORTH[abstaining(answers, told).verdict]
    assert (after.low, after.high) <= (before.low, before.high)


@given(st.lists(st.sampled_from([0.0, 0.05, 0.5, 0.9]), min_size=24, max_size=24), st.data())
def test_a_mark_that_gets_lost_never_makes_a_judge_better(
    marks: list[float], data: st.DataObject
) -> None:
    lost = data.draw(st.sets(st.integers(0, 23)))
    less = [None if n in lost else mark for n, mark in enumerate(marks)]
    before, after = judging(marks[:12], marks[12:]), judging(less[:12], less[12:])
    assert WORTH[after.verdict] <= WORTH[before.verdict]
    assert (after.auc or 0.0) <= (before.auc or 0.0)


def test_one_mark_is_not_a_constant_judge() -> None:
    found = judging([0.5, *[None] * 11], [None] * 12)
    assert found.verdict == "at chance"
    assert_names(found.says, "24 texts", 23)
    assert judging([0.5] * 12, [0.5] * 12).verdict == "constant"
    assert judging([0.5] * 12, [*[0.5] * 11, None]).verdict == "at chance"


def test_a_judge_that_marks_the_wrong_way_round_is_reversed_and_not_at_chance() -> None:
    found = judging([0.1] * 12, [0.9] * 12)
    assert (found.verdict, found.auc) == ("reversed", 0.0)
    assert found.high is not None
    assert found.high < 0.5


@pytest.mark.parametrize(("lost", "verdict"), [(1, "reversed"), (9, "at chance")])
def test_marks_that_are_missing_do_not_make_a_judge_reversed(lost: int, verdict: str) -> None:
    """With 9 of 12 blunt sentences taken as right, 108 of 144 pairs would be in order."""
    found = judging([*[0.1] * (12 - lost), *[None] * lost], [0.9] * 12)
    assert (found.verdict, found.auc) == (verdict, 0.0)


@pytest.mark.parametrize("estimate", [0.2, 0.5, 0.905, 1.0])
def test_the_ends_of_an_interval_of_few_are_where_the_score_test_stops_rejecting(
    estimate: float,
) -> None:
    low, high = auroc_of_few(estimate, 12, 10)
    for end in {low, high} - {0.0, 1.0}:
        # Hanley and McNeil's variance with both counts of pairs less one at their mean, 10.
        one, two = end / (2 - end) - end**2, 2 * end**2 / (1 + end) - end**2
        variance = (end * (1 - end) + 10 * (one + two)) / (12 * 10)
        assert abs(estimate - end) == pytest.approx(1.959963985 * math.sqrt(variance), rel=1e-6)
    mirrored = auroc_of_few(1 - estimate, 12, 10)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)
    with pytest.raises(Undefined):
        auroc_of_few(estimate, 0, 10)


def test_each_letter_and_each_thing_is_right_equally_often() -> None:
    asked = questions()
    for kind in (asked.told, asked.untold):
        assert Counter(one.right for one in kind) == {0: 4, 1: 4, 2: 4}
    assert Counter(one["right"] for one in GIVEN["told"]) == {0: 6, 1: 6}
    assert len(asked.blunt) == len(set(asked.blunt)) == len(set(asked.neutral)) == 12


def test_the_checksum_of_a_probe_is_another_with_other_questions_words_or_temperature() -> None:
    words = replace(TEXT_JUDGE, prompt=Prompt.of("Is this fair?\n{{ draft | marked('text') }}"))
    told: dict[str, Any] = {"temperature": TEXT_JUDGE.temperature, "kind": TEXT_JUDGE.kind}
    other: Agent[Any] = Agent(TEXT_JUDGE.role, TEXT_JUDGE.prompt, READER.reply, **told)
    made = [
        checksum(b"questions", READER, TEXT_JUDGE),
        checksum(b"other questions", READER, TEXT_JUDGE),
        checksum(b"questions", READER, words),
        checksum(b"questions", replace(READER, temperature=1.0), TEXT_JUDGE),
        checksum(b"questions", READER, other),
    ]
    assert len(set(made)) == len(made)
    data = resources.files("evenhand.experiments").joinpath("probe_questions.toml").read_bytes()
    assert questions().sha256 == checksum(data, READER, TEXT_JUDGE, *AGENTS)
