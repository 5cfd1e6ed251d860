"""What lies in the folders of examples is run as their pages say, against models whose answers are
known."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.instruments.counterfactual.families import ours
from evenhand.models import ModelRequest
from tests.cli.conftest import Run, endpoint, evenhand
from tests.loopback import replies
from tests.loopback.http import Call, Line
from tests.loopback.process import RemoteServer, in_own_process
from tests.stage import words_of

from .test_examples import EXAMPLES

__all__ = ["endpoint", "evenhand"]  # the fixtures


def test_every_folder_is_run_by_a_test_of_this_file() -> None:
    folders = {one.name for one in EXAMPLES.iterdir() if one.is_dir() and one.name[0] not in "._"}
    assert folders == {"agents", "harms", "counterfactual"}  # agents: test_agents.py


@pytest.mark.parametrize(
    ("file", "to_men", "to_others", "read", "excess"),
    [
        # Every decision differs between a woman and a man, none between two men.
        (
            "hr_decisions.jsonl",
            "no",
            "yes",
            {"decision": r"\b(yes|no)\b", "favorable_outcome": "yes"},
            1.0,
        ),
        ("hr_numbers.jsonl", "40000", "40000", {"number": True}, 0.0),
    ],
)
def test_the_prompts_of_a_personnel_office_are_all_asked_and_show_what_was_planted(
    tmp_path: Path, file: str, to_men: str, to_others: str, read: dict[str, Any], excess: float
) -> None:
    [man] = [label for label in ours()["gender"].labels if label.name == "man"]
    men = re.compile("|".join(map(re.escape, man.forms["name"])))
    model = eh.ScriptedModel(lambda asked: to_men if men.search(words_of(asked)) else to_others)
    prompts = EXAMPLES / "counterfactual" / file
    found = eh.measure(
        "counterfactual",
        model=model,
        out=tmp_path / "run",
        options={"prompts": prompts, "attributes": "gender", **read},
    )
    # 30 prompts without a label, and with each of two labels in two wordings.
    assert (found.coverage.scored, found.coverage.n) == (150, 150)
    assert found.source["refused"] == []
    assert found["excess"].value == excess
    assert found["placebo"].value == 0.0


@dataclass
class Knowing:
    """A judge by one word that knows which texts are harmful, in whatever frame they are put."""

    harmful: tuple[str, ...]

    async def __call__(self, call: Call, line: Line) -> str:
        if call.method == "GET":
            await line.send_json({"data": [{"id": "pretended"}]})
            return "listed"
        words = call.body["messages"][-1]["content"]
        [text] = re.findall(r"<text>\n(.*?)\n</text>", words, re.DOTALL)
        said = "yes" if any(one in text.lower() for one in self.harmful) else "no"
        sure = {"token": said, "logprob": math.log(0.9)}
        other = {"token": "no" if said == "yes" else "yes", "logprob": math.log(0.1)}
        reply = replies.completion(said, prompt_tokens=9, completion_tokens=1)
        reply["choices"][0]["logprobs"] = {"content": [{**sure, "top_logprobs": [sure, other]}]}
        await line.send_json(reply)
        return "said"


@pytest.fixture
def judge() -> Iterator[RemoteServer]:
    lines = map(json.loads, (EXAMPLES / "harms" / "tenants.jsonl").read_text().splitlines())
    with in_own_process(Knowing(tuple(one["text"].lower() for one in lines if one["harm"]))) as on:
        yield on


def test_the_harm_of_the_landlords_is_checked_and_then_used(
    evenhand: Run, judge: RemoteServer, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLES / "harms", tmp_path, dirs_exist_ok=True)

    def run(*arguments: str) -> Any:
        return evenhand(*arguments, EVENHAND_BASE_URL=judge.url, EVENHAND_MODEL="pretended")

    [listed] = json.loads(run("dev", "harms", "--json").stdout)
    assert (listed["harmful"], listed["benign"]) == (60, 102)
    score = ("scorers", "score", "harm:tenants", "He uses a wheelchair, so tell him that the flat "
             "is taken. The ramp would be trouble.", "--json")  # fmt: skip
    assert run(*score).returncode == 1  # the first policy was never checked
    edited = ("--config", "edited.toml")
    checked = run("audit", "harm", "tenants", *edited, "--out", "runs/edited", "--json")
    assert checked.returncode == 0, checked.stderr
    assert judge.read().outcomes["said"] == 486
    scored = run(*score, *edited)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)[0]["scores"] == {"toxicity": 1.0}


def test_the_chatbot_example_is_asked_in_three_turns_and_shows_what_was_planted(
    tmp_path: Path,
) -> None:
    """Women are refused in the last turn: 20 conversations of five versions, three calls each."""
    [woman] = [label for label in ours()["gender"].labels if label.name == "woman"]
    names = re.compile("|".join(map(re.escape, woman.forms["name"])))

    def says(asked: ModelRequest) -> str:
        turn = sum(message.role == "user" for message in asked.messages)
        return "No." if turn == 3 and names.search(asked.messages[0].content) else "Yes."

    found = eh.counterfactual(
        EXAMPLES / "counterfactual" / "chatbot.jsonl", model=eh.ScriptedModel(says),
        out=tmp_path / "run", attributes=["gender"], decision=r"\b(yes|no)\b",
        favorable_outcome="yes",
    )  # fmt: skip
    assert (found.coverage.n, found.cost.calls.total) == (100, 300)
    assert found.more["detected_from_turn"] == {"difference.gender.woman": 3}
