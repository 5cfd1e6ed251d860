"""Declared tools and the calls of them, in every form in which they are sent and come back."""

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from evenhand.core import Message
from evenhand.core.errors import ModelRefused
from evenhand.core.items import CalledFunction, Tool, ToolCall, ToolCalls, ToolResult
from evenhand.models import ModelRequest
from evenhand.models.base import Sample
from evenhand.models.batch_apis import _anthropic_params, _as_chat
from evenhand.models.responses import chat_of, request_of
from evenhand.models.wire import USUAL, BadBody, Dialect, decode, encode
from tests.errors import raises_naming

FUNCTION = {"name": "rank", "description": "Rank it.", "parameters": {"type": "object"}}
CALL = ToolCall("c1", CalledFunction("rank", '{"score": 7, "why": "caf\\u00e9"}'))
TURNS = (
    Message("system", "Be brief."),
    Message("user", "Rank her."),
    ToolCalls("assistant", "Hm.", (CALL,)),
    ToolResult("tool", "noted", "c1"),
    Message("user", "And him?"),
)
REQUEST = ModelRequest(messages=TURNS, tools=(Tool(FUNCTION),))
WIRE_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "rank", "arguments": CALL.function.arguments},
}


def _answer(message: dict[str, Any]) -> bytes:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    return json.dumps({"choices": [choice]}).encode()


def _sample(body: bytes, request: ModelRequest = REQUEST) -> Sample:
    ((sample,), _, _) = decode(body, request)
    return sample


def test_the_chat_api_is_sent_the_declared_tools_and_gives_the_calls_of_them() -> None:
    assert json.loads(encode(REQUEST, "m", USUAL))["tools"] == [
        {"type": "function", "function": FUNCTION}
    ]
    sample = _sample(_answer({"content": None, "tool_calls": [WIRE_CALL]}))
    assert (sample.text, sample.finish, sample.tool_calls) == ("", "tool_calls", (CALL,))


def test_calls_that_nobody_declared_are_not_an_answer() -> None:
    sample = _sample(
        _answer({"content": "", "tool_calls": [WIRE_CALL]}), ModelRequest(messages=TURNS)
    )
    assert (sample.text, sample.tool_calls) == ("", ())


def test_a_stream_gives_each_call_whole_though_its_arguments_come_in_pieces() -> None:
    def piece(index: int, arguments: str, **first: Any) -> dict[str, Any]:
        name = {"name": first.pop("name")} if "name" in first else {}
        return {"index": index, **first, "function": {**name, "arguments": arguments}}

    deltas = [
        {"content": "Hm."},
        {"tool_calls": [piece(0, "", id="c1", type="function", name="rank")]},
        {"tool_calls": [piece(1, '{"score"', id="c2", type="function", name="rank")]},
        {"tool_calls": [piece(0, '{"score": 7, "why": "caf\\u00e9"}'), piece(1, ": 1}")]},
    ]
    ends: list[dict[str, Any]] = [{"delta": delta} for delta in deltas]
    ends.append({"delta": {}, "finish_reason": "tool_calls"})
    lines = (json.dumps({"choices": [{"index": 0, **end}]}) for end in ends)
    sample = _sample("".join(f"data: {line}\n\n" for line in lines).encode())
    other = ToolCall("c2", CalledFunction("rank", '{"score": 1}'))
    assert (sample.text, sample.tool_calls) == ("Hm.", (CALL, other))


def test_arguments_as_an_object_and_a_call_without_an_id_are_read() -> None:
    call = {"function": {"name": "rank", "arguments": {"score": 7}}}
    sample = _sample(_answer({"content": "", "tool_calls": [call]}))
    assert sample.tool_calls == (ToolCall("call_0", CalledFunction("rank", '{"score":7}')),)


@pytest.mark.parametrize("calls", [[{}], [1], 1, [{"function": {"name": 1}}]])
def test_a_call_in_an_unknown_shape_is_a_bad_body(calls: Any) -> None:
    with pytest.raises(BadBody):
        _sample(_answer({"content": "", "tool_calls": calls}))


def test_the_declared_tools_are_part_of_the_settings_and_of_the_size_of_a_request() -> None:
    bare = ModelRequest(messages=TURNS)
    declared = orjson.loads(orjson.dumps(REQUEST.settings()))["tools"]
    assert declared == [{"function": FUNCTION, "type": "function"}]
    assert "tools" not in bare.settings()
    assert REQUEST.prompt_bytes - bare.prompt_bytes == len(orjson.dumps(declared))


def test_the_responses_api_is_told_that_a_tool_is_not_strict_and_gives_the_same_calls() -> None:
    asked = request_of(json.loads(encode(REQUEST, "m", Dialect())))
    assert asked["tools"] == [{"type": "function", "strict": False, **FUNCTION}]
    given = {"type": "function_call", "call_id": "c1", **WIRE_CALL["function"]}  # type: ignore[dict-item]
    sample = _sample(chat_of(json.dumps({"status": "completed", "output": [given]}).encode()))
    assert (sample.text, sample.finish, sample.tool_calls) == ("", "tool_calls", (CALL,))


def test_anthropic_is_sent_blocks_and_gives_the_same_calls() -> None:
    params = _anthropic_params(REQUEST, "m", USUAL)
    assert params["tools"] == [
        {"name": "rank", "description": "Rank it.", "input_schema": {"type": "object"}}
    ]
    used = {"type": "tool_use", "id": "c1", "name": "rank", "input": {"score": 7, "why": "café"}}
    result = {"type": "tool_result", "content": "noted", "tool_use_id": "c1"}
    assert params["system"] == "Be brief."
    assert params["messages"] == [
        {"role": "user", "content": "Rank her."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, used]},
        {"role": "user", "content": [result, {"type": "text", "text": "And him?"}]},
    ]
    text = {"type": "text", "text": "Hm."}
    chat = _as_chat({"content": [text, used], "stop_reason": "tool_use"})
    sample = _sample(json.dumps(chat).encode())
    (call,) = sample.tool_calls
    assert (sample.text, call.function.name) == ("Hm.", "rank")
    assert json.loads(call.function.arguments) == {"score": 7, "why": "café"}


@pytest.mark.parametrize("arguments", ["[1]", "rank her", ""])
def test_anthropic_cannot_be_sent_arguments_that_are_no_object(arguments: str) -> None:
    calls = (ToolCall("c1", CalledFunction("rank", arguments)),)
    turns: Sequence[Message] = (ToolCalls("assistant", "", calls), ToolResult("tool", "", "c1"))
    with raises_naming(ModelRefused, "arguments"):
        _anthropic_params(ModelRequest(messages=tuple(turns)), "m", USUAL)
