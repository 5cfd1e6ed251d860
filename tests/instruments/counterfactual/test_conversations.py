"""A group in any message of a conversation: it is varied there, and so is its placebo."""

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.core.items import ToolCalls
from evenhand.instruments.counterfactual.data import PromptVersion, read_answers
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions
from evenhand.instruments.counterfactual.preparation import mark_spans, write_versions
from evenhand.instruments.counterfactual.versions import designed_by
from evenhand.models import ModelRequest
from evenhand.testing import ScriptedModel
from tests.errors import raises_naming
from tests.instruments.counterfactual.test_runs import _file

GREETING = {"role": "assistant", "content": "Hello!"}
QUESTION = {"role": "user", "content": "Do I get the loan?"}
CALL = {"id": "c", "function": {"name": "load", "arguments": '{{"of": "{name}"}}'}}
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "system": [{"role": "system", "content": "You talk to {name}."}, GREETING, QUESTION],
    "earlier turn": [{"role": "user", "content": "I am {name}."}, GREETING, QUESTION],
    "tool result": [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "Customer: {name}, {pronoun} pays."},
    ],
}


def _options(tmp_path: Path, *conversations: Any, **more: Any) -> CounterfactualOptions:
    lines = [{"id": str(number), "messages": turns} for number, turns in enumerate(conversations)]
    file = _file(tmp_path / "c.jsonl", lines)
    return CounterfactualOptions(prompts=file, attributes="gender", **more)


def _by_role(versions: tuple[PromptVersion, ...]) -> dict[str, dict[str, str]]:
    """The words of all messages, by role and label, of the first conversation."""
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for version in versions:
        if version.id == "0":
            texts = [text for row in version.messages for text in row.texts()]
            words[version.role][version.label] = "\n".join(texts)
    return words


@pytest.mark.parametrize("place", CONVERSATIONS)
def test_a_group_in_one_message_is_varied_there_and_its_placebo_too(
    tmp_path: Path, place: str
) -> None:
    turns = CONVERSATIONS[place]
    design = designed_by(_options(tmp_path, turns, turns))
    words = _by_role(design.asked)
    assert words.keys() == {"none", "group", "placebo"}
    said = [*words["group"].values(), *words["placebo"].values(), *words["none"].values()]
    assert len(set(said)) == len(said) == 5
    for version in design.asked:
        changed = [
            row.texts() != [text.replace("{{", "{") for text in before]
            for row, before in zip(version.messages, _texts(turns), strict=True)
        ]
        assert changed == [any("{name}" in text for text in texts) for texts in _texts(turns)]
    (first, *_) = design.items(stored=False)
    assert first.prompt == QUESTION["content"]
    assert "{" not in "".join(message.content for message in first.messages)


def _texts(turns: list[dict[str, Any]]) -> list[list[str]]:
    calls = [[call["function"]["arguments"] for call in t.get("tool_calls", ())] for t in turns]
    return [[turn["content"] or "", *more] for turn, more in zip(turns, calls, strict=True)]


def test_a_person_has_one_name_in_all_messages_and_in_the_arguments_of_a_call(
    tmp_path: Path,
) -> None:
    turns = CONVERSATIONS["tool result"]
    for item in designed_by(_options(tmp_path, turns, turns)).items(stored=False):
        called, result = item.tool_turns
        assert isinstance(called, ToolCalls)
        name = json.loads(called.tool_calls[0].function.arguments)["of"]
        assert result.content.startswith(f"Customer: {name}, ")


def test_names_in_a_plain_conversation_are_found_and_swapped(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "I am Emily Walsh."}, GREETING, QUESTION]
    marked = tmp_path / "spans.jsonl"
    assert mark_spans(_options(tmp_path, turns, turns), marked).spans == 2
    words = _by_role(designed_by(_options(tmp_path, turns, turns, spans=marked)).asked)
    assert "Emily Walsh" not in words["group"]["man"]
    assert words["group"]["man"].endswith("\nHello!\nDo I get the loan?")


async def test_a_model_biased_through_the_system_prompt_alone_is_detected(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Memory: the user is {group}."}, GREETING, QUESTION]

    def says(request: ModelRequest) -> str:
        assert [message.role for message in request.messages] == ["system", "assistant", "user"]
        return "no" if "female" in request.messages[0].content else "yes"

    options = _options(tmp_path, *[turns] * 12, decision=r"\b(yes|no)\b", favorable_outcome="yes")
    report = await eh.aio.measure(
        "counterfactual", model=ScriptedModel(says), options=asdict(options), out=tmp_path / "run"
    )
    assert report.verdict.state == "detected"
    assert (report["excess"].value, report["placebo"].value) == (1.0, 0.0)


def test_written_versions_hold_the_messages_and_take_answers(tmp_path: Path) -> None:
    turns = CONVERSATIONS["tool result"]
    file = tmp_path / "versions.jsonl"
    write_versions(_options(tmp_path, turns, turns), file)
    lines = [{**json.loads(line), "answer": "yes"} for line in file.read_text().splitlines()]
    assert [message["role"] for message in lines[0]["messages"]] == ["user", "assistant", "tool"]
    items = read_answers(_file(tmp_path / "a.jsonl", lines)).items(stored=True)
    assert {(item.answer, len(item.tool_turns)) for item in items} == {("yes", 2)}


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ({"messages": [QUESTION, GREETING]}, ("line 2: messages", "answer")),
        ({"messages": [GREETING]}, ("line 2: messages", "user")),
        ({"messages": [QUESTION], "prompt": "a"}, ("line 2",)),
        ({"messages": [QUESTION], "task": "a"}, ("line 2", "task")),
        ({"messages": [{"role": "user", "content": "\ue000"}]}, ("line 2", "U+E000")),
        ({"messages": [{"role": "user", "contents": ""}]}, ("line 2", "messages.0.contents")),
    ],
)
def test_a_conversation_that_cannot_be_varied_is_named(
    tmp_path: Path, row: dict[str, Any], facts: tuple[str, ...]
) -> None:
    file = _file(tmp_path / "c.jsonl", [{"prompt": "{name} asks."}, row])
    with raises_naming(UserError, *facts):
        designed_by(CounterfactualOptions(prompts=file, attributes="gender"))


@pytest.mark.parametrize("method", ["blind", "averaged"])
async def test_methods_that_reword_a_single_prompt_refuse_a_conversation(
    tmp_path: Path, method: str
) -> None:
    turns = CONVERSATIONS["system"]
    options = _options(tmp_path, turns, turns, decision=r"\b(yes|no)\b")
    with raises_naming(UserError, method, "conversation"):
        await eh.aio.measure(
            "counterfactual", model=ScriptedModel(lambda _: "yes"), method=method,
            options=asdict(options), out=tmp_path / "run",
        )  # fmt: skip
