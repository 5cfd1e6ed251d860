"""Conversations from Python: what is given as a dict is what a line of a file is."""

from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.core import Usage
from evenhand.core.items import CalledFunction, ToolCall
from evenhand.models import ModelReply, ModelRequest, Sample, ScriptedModel
from tests.errors import raises_naming

CALL = ToolCall("c1", CalledFunction("rank", '{"score": 7}'))
TALK: dict[str, Any] = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rank."}],
    "tools": [{"type": "function", "function": {"name": "rank"}}],
}


def _calls(request: ModelRequest) -> ModelReply:
    calls = (CALL,) if request.tools else ()
    sample = Sample("" if calls else "7", "tool_calls", tool_calls=calls)
    return ModelReply(samples=(sample,), usage=Usage(1, 1))


def test_a_tool_call_is_the_answer_to_a_conversation_that_declares_the_tool() -> None:
    final = eh.answer(TALK, model=ScriptedModel(_calls), method="default")
    assert (final.text, final.tool_calls) == ('rank {"score": 7}', (CALL,))
    (turn,) = final.turns
    assert [message.content for message in turn.messages] == ["Be brief.", "Rank."]


def test_prompts_and_conversations_may_be_in_one_list(tmp_path: Path) -> None:
    run = eh.mitigate(
        ["Rank.", TALK], model=ScriptedModel(_calls), method="default", out=str(tmp_path / "run")
    )
    rows = run.results()
    assert rows["text"].to_list() == ["7", 'rank {"score": 7}']
    assert rows["tool_calls"].is_null().to_list() == [True, False]


@pytest.mark.parametrize(
    ("items", "facts"),
    [
        ([{"messages": []}], ["items[0]", "messages"]),
        ([{"messages": TALK["messages"], "tools": [{"function": {}}]}], ["items[0]", "name"]),
        (TALK, ["dict", "list"]),
        ([3], ["int", "dict"]),
    ],
)
def test_what_is_no_item_is_named(items: Any, facts: list[str], tmp_path: Path) -> None:
    with raises_naming(eh.UserError, *facts):
        eh.mitigate(items, model=ScriptedModel(_calls), out=str(tmp_path / "run"))
