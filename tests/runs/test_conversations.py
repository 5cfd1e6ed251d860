"""Conversations in files: what is read, how a run keeps them, and what is written back."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand.aio as evenhand
from evenhand.core import Answer, Answered, Draft, Item, Message, Result, messages_in
from evenhand.core.errors import UserError
from evenhand.core.items import CalledFunction, ToolCall, ToolCalls, ToolResult
from evenhand.models import Endpoint
from evenhand.models.base import ModelRequest
from evenhand.models.responses import request_of
from evenhand.runs.runners import JsonlFile, replay_of
from evenhand.runs.runners.source import read_item
from evenhand.runs.store import RunReader
from evenhand.testing import ScriptedModel
from evenhand.views.export.results import answered
from tests.errors import raises_naming
from tests.loopback import replies
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line

CALL = {"id": "c1", "type": "function", "function": {"name": "seats", "arguments": '{"row":3}'}}
TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "You sell tickets."},
    {"role": "user", "content": "A seat?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "Seat 12", "tool_call_id": "c1"},
    {"role": "assistant", "content": "Seat 12."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "It is free.", "tool_call_id": "c1"},
]


SEATS: dict[str, Any] = {
    "type": "function",
    "function": {"name": "seats", "parameters": {"type": "object", "properties": {"row": {}}}},
}
OTHER = {**CALL, "id": "c2", "function": {"name": "seats", "arguments": '{"row": "\\u00e9"}'}}


def _read(**row: Any) -> Item:
    return read_item(json.dumps(row).encode(), 0, "file line 3")


def test_the_last_turn_of_the_user_is_the_prompt_and_what_follows_it_is_the_answer() -> None:
    item = _read(messages=[*TURNS[:6], {"role": "assistant", "content": "So."}], id="a")
    called = ToolCall("c1", CalledFunction("seats", '{"row":3}'))
    assert (item.id, item.prompt, item.answer, item.tool_turns) == ("a", "Why?", "So.", ())
    assert item.history == (
        Message("system", "You sell tickets."),
        Message("user", "A seat?"),
        ToolCalls("assistant", "", (called,)),
        ToolResult("tool", "Seat 12", "c1"),
        Message("assistant", "Seat 12."),
    )
    assert [message.role for message in _read(messages=TURNS).tool_turns] == ["assistant", "tool"]


def test_a_sample_of_inspect_is_read_as_the_conversation_that_it_is() -> None:
    ours = _read(messages=TURNS)
    call = {"id": "c1", "type": "function", "function": "seats", "arguments": {"row": 3}}
    theirs = [
        {**turn, "id": "x", "content": turn["content"] or "", "tool_calls": [call]}
        if "tool_calls" in turn
        else {**turn, "source": "input"}
        for turn in TURNS
    ]
    assert _read(input=theirs, target="12") == ours
    assert _read(input="Why?", id=7) == Item(id="7", prompt="Why?")


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"messages": [{"role": "user", "content": "a"}, {"role": "bot", "content": "b"}]},
         "messages.1.role"),
        ({"messages": [{"role": "user", "content": "a", "weight": 0}]}, "messages.0.weight"),
        ({"messages": [{"role": "user"}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": "a", "tool_call_id": "c"}]}, "messages.0"),
        ({"messages": [{"role": "system", "content": "a"}]}, "messages"),
        ({"messages": [*TURNS[:7], TURNS[6]]}, "messages"),
        ({"messages": TURNS[:2], "tools": [{"function": {"description": "a"}}]},
         "tools.0.function.name"),
        ({"messages": TURNS[:2], "tools": [SEATS], "choices": ["a", "b"]}, "tools"),
        ({"prompt": "a", "tools": [SEATS]}, "tools"),
        ({"messages": [*TURNS[:2], {"role": "system", "content": "s"}]}, "messages.2"),
        ({"messages": [*TURNS[:2], {"role": "assistant", "content": " "}]}, "messages.2"),
        ({"messages": TURNS[:2], "prompt": "a"}, "prompt"),
        ({"input": "a", "sandbox": "docker"}, "sandbox"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_by_line_and_field(row: dict[str, Any], field: str) -> None:
    with raises_naming(UserError, "file line 3", f" {field}:"):
        _read(**row)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text()), max_size=5),
    st.text(min_size=1).filter(str.strip),
    st.text(min_size=1).filter(str.strip),
)
def test_a_repaired_conversation_keeps_its_earlier_turns_to_the_byte(
    earlier: list[tuple[str, str]], prompt: str, repaired: str
) -> None:
    before = [{"role": role, "content": text} for role, text in [*earlier, ("user", prompt)]]
    item = _read(messages=[*before, {"role": "assistant", "content": "stored"}])
    assert item.answer == "stored"
    event = Answered(0, item, Answer(drafts=(Draft(text=repaired),), stopped="x"), 1, 1, 1)
    row = Result.of(event)
    written = answered(row.prompt, row.conversation, row.text or "")
    assert written == {"messages": [*before, {"role": "assistant", "content": repaired}]}


async def test_tool_calls_reach_the_endpoint_the_run_its_replay_and_the_export(
    tmp_path: Path,
) -> None:
    bodies: list[dict[str, Any]] = []

    async def says(call: Call, line: Line) -> str:
        bodies.append(call.body)
        await line.send_json(replies.completion("Free.", prompt_tokens=9, completion_tokens=2))
        return "said"

    file = tmp_path / "items.jsonl"
    lines = [{"messages": TURNS}, {"prompt": "Why?"}]
    file.write_text("\n".join(map(json.dumps, lines)))
    settings_: dict[str, Any] = {"method": "default", "concurrency": 1}
    async with LoopbackServer(says) as server:
        model = Endpoint(server.url, model="m")
        await evenhand.mitigate(
            JsonlFile(file), model=model, out=str(tmp_path / "run"), **settings_
        )
        await model.close()
    sent = [{**turn, "content": turn["content"] or ""} for turn in TURNS]
    assert [body["messages"] for body in bodies] == [sent, [{"role": "user", "content": "Why?"}]]
    reader = RunReader(tmp_path / "run")
    row, single = reader.results().collect().to_dicts()
    item = _read(messages=TURNS)
    assert messages_in(row["conversation"]) == item.messages
    assert single["conversation"] is None
    turns = [turn for batch in reader.turn_batches() for turn in batch]
    assert turns[0].messages == item.messages
    await evenhand.mitigate(
        JsonlFile(file), model=replay_of(tmp_path / "run"), out=str(tmp_path / "again"),
        **settings_,
    )  # fmt: skip
    assert len(bodies) == 2
    again = RunReader(tmp_path / "again")
    assert again.results().collect().equals(reader.results().collect())
    await evenhand.runs_export(tmp_path / "run", tmp_path / "out.jsonl", to="messages")
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {"messages": [*TURNS, {"role": "assistant", "content": "Free."}]}
    assert [message["role"] for message in second["messages"]] == ["user", "assistant"]


async def test_a_run_of_single_prompts_is_stored_without_a_trace_of_conversations(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda _: 'She said {"a":1,"tool_calls":[]}.')
    run = await evenhand.mitigate(["Why?"], model=model, method="default", out=str(tmp_path / "r"))
    (results,) = (tmp_path / "r/results").glob("*.parquet")
    (turns,) = (tmp_path / "r/turns").glob("*.parquet")
    assert "conversation" not in pq.read_schema(results).names
    struct = pq.read_schema(turns).field("messages").type.value_type
    assert [field.name for field in struct] == ["role", "content"]
    (message,) = run.reader.turns().collect()["messages"][0].to_list()
    assert message == {"role": "user", "content": "Why?", "tool_calls": None, "tool_call_id": None}


async def test_an_answer_that_calls_a_declared_tool_is_recorded_replayed_and_written_back(
    tmp_path: Path,
) -> None:
    bodies: list[dict[str, Any]] = []

    async def says(call: Call, line: Line) -> str:
        bodies.append(call.body)
        reply = replies.completion("", prompt_tokens=9, completion_tokens=2)
        choice = reply["choices"][0]
        choice["message"] |= {"content": None, "tool_calls": [CALL, OTHER]}
        await line.send_json({**reply, "choices": [{**choice, "finish_reason": "tool_calls"}]})
        return "said"

    file = tmp_path / "items.jsonl"
    lines = [{"messages": TURNS, "tools": [SEATS]}, {"messages": TURNS[:2], "tools": [SEATS]}]
    file.write_text("\n".join(map(json.dumps, lines)))
    run = {"method": "default", "concurrency": 1}
    async with LoopbackServer(says) as server:
        model = Endpoint(server.url, model="m")
        await evenhand.mitigate(JsonlFile(file), model=model, out=str(tmp_path / "a"), **run)  # type: ignore[arg-type]
        await model.close()
    assert [body["tools"] for body in bodies] == [[SEATS], [SEATS]]
    results = RunReader(tmp_path / "a").results().collect()
    assert results["text"].to_list() == ['seats {"row":3}\nseats {"row": "\\u00e9"}'] * 2
    assert [json.loads(calls) for calls in results["tool_calls"]] == [[CALL, OTHER]] * 2
    replay = replay_of(tmp_path / "a")
    await evenhand.mitigate(JsonlFile(file), model=replay, out=str(tmp_path / "b"), **run)  # type: ignore[arg-type]
    assert len(bodies) == 2
    assert RunReader(tmp_path / "b").results().collect().equals(results)
    await evenhand.runs_export(tmp_path / "a", tmp_path / "out.jsonl", to="messages")
    written = list(map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()))
    called = {"role": "assistant", "content": None, "tool_calls": [CALL, OTHER]}
    assert written == [{**line, "messages": [*line["messages"], called]} for line in lines]


async def test_a_fine_tuning_row_that_ends_in_a_tool_call_has_that_call_as_its_answer(
    tmp_path: Path,
) -> None:
    row = {"messages": [*TURNS[:2], {"role": "assistant", "content": "So.", "tool_calls": [OTHER]}],
           "tools": [SEATS]}  # fmt: skip
    item = _read(**row)
    assert item.answer == 'So.\nseats {"row": "\\u00e9"}'
    assert Item.of(json.loads(json.dumps(item.described(), default=asdict))) == item
    await evenhand.mitigate([item], model=ScriptedModel(_never), method="stored",
                            out=str(tmp_path / "a"))  # fmt: skip
    await evenhand.runs_export(tmp_path / "a", tmp_path / "out.jsonl", to="messages")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == row


def _never(_: ModelRequest) -> str:
    raise AssertionError("a stored answer was asked for")


def test_the_responses_api_gets_tool_calls_as_items_of_its_own() -> None:
    asked = request_of({"model": "m", "messages": TURNS[:4]})
    assert asked["input"] == [
        *TURNS[:2],
        {"type": "function_call", "call_id": "c1", "name": "seats", "arguments": '{"row":3}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Seat 12"},
    ]
