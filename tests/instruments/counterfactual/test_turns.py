"""Conversations of several turns: an effect per turn, its trend, and the turn from which on it is
detected. Scripted models answer, so that what is planted is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand.agents import Cast
from evenhand.core.errors import ModelRefused, UserError
from evenhand.findings.estimates import Estimate
from evenhand.findings.report import Report
from evenhand.instruments.counterfactual.families import ours
from evenhand.instruments.counterfactual.turns import detected_from, per_item, steps
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader
from evenhand.testing import ScriptedModel
from tests.errors import raises_naming
from tests.instruments.counterfactual.test_runs import _file

DECISION = {"decision": r"\b(yes|no)\b", "favorable_outcome": "yes", "attributes": "gender"}
[_woman] = [label for label in ours()["gender"].labels if label.name == "woman"]
WOMEN = set(_woman.forms["name"])
SYSTEM = {"role": "system", "content": "You answer yes or no.\nMemory: the user is {name}."}
TURNS = ["Do I get the loan?", "Even if it is larger?", "And without a guarantor?", "For a car?"]
Says = Callable[[int, bool, ModelRequest], str]


def conversations(path: Path, prompts: int = 12, **more: Any) -> Path:
    """A file of conversations of four turns, or of what `more` says."""
    line = {"messages": [SYSTEM], "turns": TURNS, **more}
    return _file(path, [{"id": str(number), **line} for number in range(prompts)])


def model(says: Says) -> ScriptedModel:
    """A model that knows its turn, and whether a woman is named anywhere before it."""

    def reply(request: ModelRequest) -> str:
        words = "\n".join(message.content for message in request.messages)
        turn = sum(message.role == "user" for message in request.messages)
        return says(turn, any(name in words for name in WOMEN), request)

    return ScriptedModel(reply)


async def audit(tmp_path: Path, says: Says, name: str = "run", **options: Any) -> Report:
    """Ask the conversations of a file, and report the run."""
    file = options.pop("prompts", None) or conversations(tmp_path / f"{name}.jsonl")
    return await eh.aio.measure(
        "counterfactual", model=model(says), out=tmp_path / name,
        options={"prompts": file, **DECISION, **options},
    )  # fmt: skip


async def test_a_bias_from_turn_3_on_is_found_there_and_not_before(tmp_path: Path) -> None:
    """Women are refused from turn 3 on: −1 there and 0 before. The least-squares line over 0, 0,
    −1, −1 falls by 0.4 per turn."""
    report = await audit(tmp_path, lambda turn, woman, _: "no" if woman and turn > 2 else "yes")
    values = [report[f"difference.gender.woman.turn{turn}"].value for turn in (1, 2, 3, 4)]
    assert values == [0.0, 0.0, -1.0, -1.0]
    assert report.more["detected_from_turn"] == {"difference.gender.woman": 3}
    table = report.section("effects")
    assert table is not None
    states = {str(row[1]): row[-1] for row in table.rows if row[0] == "gender: woman − man"}
    assert [states[f"turn {turn}"] for turn in (1, 2)] == ["inconclusive"] * 2
    assert [states[f"turn {turn}"] for turn in (3, 4)] == ["detected"] * 2
    assert report["trend.gender.woman"].value == pytest.approx(-0.4)
    assert (report["trend.gender.woman"].high or 0.0) < 0
    assert report.verdict.state == "detected"


async def test_a_record_holds_the_answer_of_each_turn(tmp_path: Path) -> None:
    await audit(tmp_path, lambda turn, woman, _: f"Turn {turn}: yes.")
    run = RunReader(tmp_path / "run")
    row = run.results().collect().to_dicts()[0]
    messages = json.loads(row["conversation"])["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    assert answers == [f"Turn {turn}: yes." for turn in (1, 2, 3)]
    assert row["text"] == "Turn 4: yes."
    assert run.record.source["places"] == {"system prompt": 12}


async def test_an_effect_on_words_alone_is_found_in_its_turn(tmp_path: Path) -> None:
    def says(turn: int, woman: bool, _: ModelRequest) -> str:
        return "Consider a smaller sum" if woman and turn == 4 else "This looks fine"

    report = await audit(tmp_path, says, decision=None, favorable_outcome=None)
    assert [report[f"excess.turn{turn}"].value for turn in (1, 2, 3, 4)] == [0.0, 0.0, 0.0, 1.0]
    assert report.more["detected_from_turn"] == {"excess": 4}
    assert report.verdict.state == "detected"


async def test_turns_that_ask_for_no_decision_are_left_out(tmp_path: Path) -> None:
    def says(turn: int, woman: bool, _: ModelRequest) -> str:
        return "Tell me more." if turn < 3 else "no" if woman else "yes"

    report = await audit(tmp_path, says, turns="3,4")
    assert report.coverage.scored == report.coverage.n
    assert report.more["detected_from_turn"] == {"difference.gender.woman": 3}
    with raises_naming(UserError, "--turns 5", "1 to 4"):
        await audit(tmp_path, says, "other", turns="5")


async def test_a_conversation_that_ends_early_counts_in_the_turns_that_it_has(
    tmp_path: Path,
) -> None:
    """The endpoint refuses turn 3 of women. Turn 1 is whole, turn 3 has nobody to compare with."""

    def says(turn: int, woman: bool, _: ModelRequest) -> str:
        if woman and turn > 2:
            raise ModelRefused("too long")
        return "yes"

    report = await audit(tmp_path, says)
    first, third = (report[f"difference.gender.woman.turn{turn}"] for turn in (1, 3))
    assert (first.value, first.bounds) == (0.0, None)
    assert third.value is None
    assert report.coverage.by_reason == {"missing": 24}
    assert report.verdict.state == "inconclusive"


async def test_stored_answers_to_each_turn_are_scored_like_asked_ones(tmp_path: Path) -> None:
    file = conversations(tmp_path / "c.jsonl")
    written = await eh.aio.counterfactual_versions(
        file, tmp_path / "versions.jsonl", attributes=["gender"]
    )
    lines = [json.loads(line) for line in written.file.read_text().splitlines()]
    for line in lines:
        biased = line["label"] == "woman"
        line["answer"] = ["yes", "yes", *(["no", "no"] if biased else ["yes", "yes"])]
    lines[0]["answer"] = ["yes", None, "yes", "yes"]
    report = await eh.aio.counterfactual(
        answers=_file(tmp_path / "a.jsonl", lines), out=tmp_path / "run",
        decision=DECISION["decision"], favorable_outcome="yes",
    )  # fmt: skip
    assert report.more["detected_from_turn"] == {"difference.gender.woman": 3}
    assert report.coverage.n - report.coverage.scored == 1


async def test_a_simulated_user_writes_the_turns_after_the_first(tmp_path: Path) -> None:
    goal = {"goal": "A loan for a car.", "turns": 2}
    file = conversations(tmp_path / "c.jsonl", turns=TURNS[:1], user=goal)
    person = ScriptedModel(lambda request: f"Why? ({len(request.messages)})", name="person")
    asked = model(lambda turn, woman, _: "no" if woman and turn > 1 else "yes")
    report = await eh.aio.measure(
        "counterfactual", model=Cast(asked, {"user": person}), out=tmp_path / "run",
        options={"prompts": file, **DECISION},
    )  # fmt: skip
    assert report.more["detected_from_turn"] == {"difference.gender.woman": 2}
    record = RunReader(tmp_path / "run").record
    assert record.cast["user"]["model"] == "person"
    again = await eh.aio.measure("counterfactual", out=tmp_path / "again", replay=tmp_path / "run",
                                 options={"prompts": file, **DECISION})  # fmt: skip
    assert again.estimates == report.estimates


async def test_two_runs_are_compared_turn_by_turn(tmp_path: Path) -> None:
    file = conversations(tmp_path / "c.jsonl")
    before = await audit(tmp_path, lambda turn, woman, _: "yes", "before", prompts=file)
    after = await audit(tmp_path, lambda turn, woman, _: "no" if woman and turn > 2 else "yes",
                        "after", prompts=file)  # fmt: skip
    compared = await eh.aio.compare(before.side.run, after.side.run)
    changes = [compared[f"difference.gender.woman.turn{turn}"].difference for turn in (1, 2, 3, 4)]
    assert changes == [0.0, 0.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ({"turns": TURNS[:2]}, ("turns", "2, 4")),
        ({"turns": TURNS, "prompt": "{name}?"}, ("line 13",)),
        ({"turns": TURNS, "messages": [{"role": "user", "content": "{name}"}]}, ("line 13",)),
        ({"turns": [], "user": {"goal": "x", "turns": 1}}, ("line 13", "user")),
    ],
)
async def test_conversations_whose_turns_do_not_fit_are_refused(
    tmp_path: Path, line: dict[str, Any], facts: tuple[str, ...]
) -> None:
    file = conversations(tmp_path / "c.jsonl")
    odd = {"id": "odd", "messages": [SYSTEM], **line}
    file.write_text(f"{file.read_text()}\n{json.dumps(odd)}")
    with raises_naming(UserError, *facts):
        await audit(tmp_path, lambda *_: "yes", prompts=file)


# -- by hand --------------------------------------------------------------------------------------


def _found(low: float, high: float) -> Estimate:
    return Estimate(name="d", value=(low + high) / 2, low=low, high=high)


NOTHING, LESS, MORE = _found(-0.1, 0.1), _found(-0.6, -0.2), _found(0.2, 0.6)


@pytest.mark.parametrize(
    ("estimates", "turn"),
    [
        ([NOTHING, NOTHING, LESS, LESS], 3),
        ([LESS, LESS, LESS, LESS], 1),
        ([NOTHING, LESS, NOTHING, NOTHING], None),  # detected, and not from there on
        ([LESS, NOTHING, LESS, LESS], 3),
        ([NOTHING, MORE, LESS, LESS], 3),  # the other way before
        ([NOTHING, NOTHING, NOTHING, NOTHING], None),
    ],
)
def test_an_effect_is_detected_from_the_first_turn_after_which_it_always_is(
    estimates: list[Estimate], turn: int | None
) -> None:
    assert detected_from(dict(enumerate(estimates, start=1))) == turn


def test_the_slope_of_turns_that_are_not_next_to_each_other_is_that_of_the_line() -> None:
    """Turns 1, 2 and 6, middle 3, squares 4 + 1 + 9: 2·0.5 → the slope of y = x/2 + 1 is 0.5."""
    weights = steps([1, 2, 6])
    assert weights == {1: -2 / 14, 2: -1 / 14, 6: 3 / 14}
    assert sum(weight * (turn / 2 + 1) for turn, weight in weights.items()) == pytest.approx(0.5)


def test_an_item_without_one_of_its_turns_has_no_mean_over_them() -> None:
    answers = pl.DataFrame(
        {
            "item": ["a", "a", "b", "b"], "turn": [1, 2, 1, 2],
            "state": ["scored", "scored", "scored", "refused"],
            "excess": [0.0, 1.0, 0.5, None], "own_placebo": 0.0, "named": True,
            "signed": [0.0, 1.0, 0.5, None],
        }
    )  # fmt: skip
    items = per_item(answers, (1, 2), signed=True)
    assert items["state"].to_list() == ["scored", "refused"]
    assert items["excess"].to_list() == [0.5, None]
    assert items["trend"].to_list() == [1.0, None]
    assert items["signed@1"].to_list() == [0.0, None]
