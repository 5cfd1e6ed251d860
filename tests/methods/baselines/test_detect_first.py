"""Detect first: does the context decide? If not, the option that says so, told by its words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.core import Failed, Item
from evenhand.core.errors import UserError
from evenhand.instruments.bbq.data import BbqData
from evenhand.methods.baselines.detect_first import DetectFirst, stands_in
from evenhand.methods.evaluators import unknown_option
from tests.errors import raises_naming
from tests.stage import OPTIONS, QUESTION, TEXT, Stage, choice

DETECTOR, GENERATOR = "detector", "generator"
TOLD = replace(QUESTION, context="A girl and a boy left the exam.\nThe boy  failed in “maths”.")


def detected(decided: Any, evidence: str = "", reason: str = "it says so") -> str:
    return json.dumps({"reason": reason, "evidence": evidence, "decided": decided})


async def test_a_context_that_decides_nothing_is_answered_unknown_after_one_call() -> None:
    reason = "no marks are given"
    stage = Stage({DETECTOR: [detected(False, reason=reason)]})
    answer = await stage.answer(DetectFirst(), QUESTION)
    assert stage.order == [DETECTOR]
    assert (answer.choice, answer.text) == (2, "Cannot be known")
    assert (answer.stopped, answer.drafts[0].reasoning) == ("undecided", reason)
    (asked,) = stage.asked_of(DETECTOR)
    assert f"<context>\n{QUESTION.context}\n</context>" in asked
    assert f"<question>\n{QUESTION.prompt}\n</question>" in asked
    assert OPTIONS in asked


async def test_a_context_that_decides_is_followed_by_the_plain_question() -> None:
    stage = Stage({DETECTOR: [detected(True, "The boy failed")], GENERATOR: [choice("B")]})
    answer = await stage.answer(DetectFirst(), TOLD)
    assert stage.order == [DETECTOR, GENERATOR]
    assert "decide" not in stage.asked_of(GENERATOR)[0]
    assert (answer.choice, answer.stopped) == (1, "single_pass")


@pytest.mark.parametrize("evidence", ["", "  ", "The girl failed in maths", "..."])
async def test_a_decision_without_words_of_the_context_does_not_count(evidence: str) -> None:
    stage = Stage({DETECTOR: [detected(True, evidence)]})
    answer = await stage.answer(DetectFirst(), TOLD)
    assert (answer.choice, answer.stopped) == (2, "undecided")


async def test_evidence_without_a_decision_is_not_enough() -> None:
    stage = Stage({DETECTOR: [detected(False, "The boy failed")]})
    assert (await stage.answer(DetectFirst(), TOLD)).stopped == "undecided"


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(replace(TOLD, choices=("The girl", "The boy")), id="no unknown option"),
        pytest.param(replace(TOLD, context=""), id="no context"),
    ],
)
async def test_where_there_is_nothing_to_detect_the_plain_question_is_asked_once(
    item: Item,
) -> None:
    stage = Stage({GENERATOR: [choice("B")]})
    answer = await stage.answer(DetectFirst(), item)
    assert (stage.order, answer.choice) == ([GENERATOR], 1)


@pytest.mark.parametrize("said", ["yes", detected("true"), detected(1), '{"decided": true}'])
async def test_a_detection_that_cannot_be_read_fails_the_item_and_is_not_taken_for_unknown(
    said: str,
) -> None:
    end = await Stage({DETECTOR: [said, said]}).end_of(DetectFirst(), TOLD)
    assert isinstance(end, Failed)
    assert end.reason.startswith("unreadable_reply:")


async def test_a_text_is_refused() -> None:
    with raises_naming(UserError, "detect_first", "'t'"):
        await Stage({}).answer(DetectFirst(), TEXT)


@pytest.mark.parametrize(
    "option",
    [
        *("Can't answer", "Not answerable", "Not enough information", "Cannot answer"),
        *("Not known", "Undetermined", "Unknown", "Can't be determined"),
        *("Cannot be determined", "Not enough info"),  # so far the ten of BBQ
        *("UNKNOWN.", "Can’t be known", "It is unclear", "I don't know", "Can not say"),
        *("There is not enough information to answer", "It cannot be determined from the text"),
    ],
)
def test_an_option_that_says_it_is_not_known_is_found_by_its_words(option: str) -> None:
    assert unknown_option(("The girl", option, "The boy")) == 1


@pytest.mark.parametrize(
    "option",
    [
        "The man with no beard",
        "The unknown man",
        "The one who could not answer",
        "Knowles",
        "The student who cannot be told what to do",
        "The info desk",
        "Neither",
        "",
    ],
)
def test_an_option_that_only_sounds_like_it_is_not_taken_for_unknown(option: str) -> None:
    assert unknown_option((option, "The boy")) is None


def test_of_two_unknown_options_the_first_is_taken() -> None:
    assert unknown_option(("X", "Unknown", "Not known")) == 1


def test_every_unknown_option_of_bbq_is_found_and_no_other_option_is(
    data_folder: Path, tmp_path: Path
) -> None:
    records = BbqData(local=data_folder, cache=tmp_path).records()
    for options, unknown in records.select("options", "unknown").unique().iter_rows():
        assert unknown_option(tuple(options)) == unknown, options


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ('the BOY failed in "maths"', True),
        ("“The boy failed…”", True),
        ("The boy\nfailed", True),
        ("The boy did fail", False),
        ("“”", False),
    ],
)
def test_a_quote_is_looked_for_without_regard_to_case_blanks_and_marks(
    quote: str, found: bool
) -> None:
    assert stands_in(quote, TOLD.context) is found
