"""The conversation of a request in the evidence: its turns are kept as the answer's words are."""

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from evenhand.core import Message, messages_in
from evenhand.core.items import CalledFunction, ToolCall, ToolCalls, ToolResult
from evenhand.gateway.recorded import NOT_KEPT, Content, rows
from evenhand.gateway.verdicts import Action
from evenhand.gateway.wire.chat import Chat
from evenhand.gateway.wire.messages import Messages
from evenhand.gateway.wire.responses import Responses
from tests.gateway.exchanges import exchange, repaired

CALL = {
    "id": "call-Zebedee",
    "type": "function",
    "function": {"name": "book_Zebedee", "arguments": '{"guest": "Zebedee", "row": 3}'},
}
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "You sell tickets."},
    {"role": "user", "content": "My name is Zebedee. My number is 415-555-2671."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "Booked for Zebedee.", "tool_call_id": "call-Zebedee"},
    {"role": "user", "content": "Why row 3?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "It is free.", "tool_call_id": "call-Zebedee"},
]


def _asked(turns: list[dict[str, Any]]) -> tuple[Message, ...]:
    return Chat().asked(json.dumps({"model": "m", "messages": turns}).encode()).messages


def _kept(content: Content, turns: tuple[Message, ...], **changes: Any) -> dict[str, Any]:
    exchanged = replace(exchange("x", repaired(), prompt="Why row 3?"), messages=turns, **changes)
    (row,) = rows(exchanged, content, b"key", lambda text: text)
    return {"stored": row.result.conversation, "bytes": orjson.dumps(row.result)}


def test_a_name_of_an_earlier_turn_is_masked_in_every_turn_and_call() -> None:
    kept = _kept("on", _asked(TURNS))
    assert b"Zebedee" not in kept["bytes"]
    assert b"555-2671" not in kept["bytes"]
    turns = messages_in(kept["stored"])
    assert [turn.role for turn in turns] == [turn["role"] for turn in TURNS]
    assert turns[1].content == "My name is [name]. My number is [phone]."
    assert isinstance(turns[2], ToolCalls)
    (call,) = turns[2].tool_calls
    assert json.loads(call.function.arguments) == {"guest": "[name]", "row": 3}
    assert turns[3] == ToolResult("tool", "Booked for [name].", call.id)
    assert turns[4] == Message("user", "Why row 3?")


def test_where_no_content_is_kept_there_are_roles_and_no_words() -> None:
    turns = messages_in(_kept("off", _asked(TURNS))["stored"])
    assert [turn.role for turn in turns] == [turn["role"] for turn in TURNS]
    assert {turn.content for turn in turns} == {NOT_KEPT, ""}
    assert isinstance(turns[2], ToolCalls)
    assert turns[2].tool_calls == (ToolCall(NOT_KEPT, CalledFunction(NOT_KEPT, NOT_KEPT)),)


def test_hashed_turns_can_be_compared_and_not_read() -> None:
    kept = _kept("hashed", _asked(TURNS))
    for word in (b"Zebedee", b"tickets", b"row", b"free"):
        assert word not in kept["bytes"]
    turns = messages_in(kept["stored"])
    again = messages_in(_kept("hashed", _asked(TURNS[1:]))["stored"])
    assert turns[1:] == again
    assert len({turn.content for turn in turns}) == 6  # of the two calls neither says a word


@pytest.mark.parametrize("content", ["on", "hashed", "off"])
def test_a_blocked_exchange_has_its_conversation_too(content: Content) -> None:
    blocked = _kept(content, _asked(TURNS), verdicts=(), action=Action.BLOCKED)
    assert len(messages_in(blocked["stored"])) == len(TURNS)
    assert b"Zebedee" not in blocked["bytes"]


def test_half_a_character_in_an_earlier_turn_does_not_cost_the_row() -> None:
    turns = (Message("system", "a\ud800"), Message("user", "Why row 3?"))
    assert messages_in(_kept("on", turns)["stored"])[0].content == "a?"


def test_a_single_prompt_is_kept_as_before() -> None:
    assert _kept("on", _asked(TURNS[4:5]))["stored"] is None


def test_the_responses_api_gives_the_same_turns() -> None:
    call = {"type": "function_call", "call_id": "call-Zebedee", **CALL["function"]}  # type: ignore[dict-item]
    said = {"type": "function_call_output", "call_id": "call-Zebedee", "output": "It is free."}
    body = {"model": "m", "instructions": "You sell tickets.", "input": [TURNS[1], call, said]}
    asked = Responses().asked(json.dumps(body).encode())
    first, second, third, fourth = asked.messages
    assert (first, second.content) == (Message("system", "You sell tickets."), TURNS[1]["content"])
    assert (third, fourth) == _asked([TURNS[5], TURNS[6]])


def test_anthropics_api_gives_the_same_turns() -> None:
    used = {"type": "tool_use", "id": "call-Zebedee", "name": "book_Zebedee",
            "input": {"guest": "Zebedee", "row": 3}}  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": "call-Zebedee", "content": "It is free."}
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": "You sell tickets.",
        "messages": [
            TURNS[4],
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
        ],
    }
    first, second, third, fourth = Messages().asked(json.dumps(body).encode()).messages
    assert (first, second) == _asked([TURNS[0], TURNS[4]])
    assert isinstance(third, ToolCalls)
    assert third.tool_calls == _asked([TURNS[5]])[0].tool_calls  # type: ignore[attr-defined]
    assert fourth == _asked([TURNS[6]])[0]


@pytest.mark.parametrize("calls", [[1], {"a": 1}, [{"function": "f"}], [{"function": {"name": 1}}]])
def test_calls_of_any_shape_are_read_and_none_costs_the_request(calls: Any) -> None:
    (turn,) = _asked([{"role": "assistant", "content": "", "tool_calls": calls}])
    assert isinstance(turn, ToolCalls)


def test_roles_that_are_not_ours_are_taken_for_those_that_are() -> None:
    turns = [{"role": role, "content": "a"} for role in ("developer", "function", "critic")]
    assert [turn.role for turn in _asked(turns)] == ["system", "tool", "assistant"]
