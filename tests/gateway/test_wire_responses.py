"""/responses: nothing is kept upstream, and a stream that contradicts itself is not believed."""

import json
from typing import Any

import pytest

from evenhand.gateway.wire import ClientRequest, ExchangeOutcome, MalformedReply, Refused
from evenhand.gateway.wire.responses import Responses, ResponsesReply
from tests.gateway.answers import OLD, RESPONSES
from tests.gateway.streams import DONE, fed, read_simply, stream_of

PLAIN = ExchangeOutcome(action="passed")


def asked(**more: Any) -> ClientRequest:
    return Responses().asked(json.dumps({"model": "m", "input": "Hello.", **more}).encode())


def read(**changed: Any) -> ResponsesReply:
    reply = Responses().reply(asked())
    reply.read(json.dumps({**RESPONSES.plain, **changed}).encode())
    return reply


def test_a_judge_is_shown_instructions_and_items_each_with_its_role() -> None:
    found = asked(
        instructions="Be brief.",
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "First."}]},
            {"type": "message", "role": "assistant", "content": "Yes?"},
            {"role": "user", "content": "Second."},
            {"type": "function_call", "name": "a", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "A nurse."},
        ],
    )
    assert found.prompt == "Second."
    context = (
        "system: Be brief.\n\nuser: First.\n\nassistant: Yes?\n\nfunction_call_output: A nurse."
    )
    assert found.context == context


def test_the_upstream_is_told_to_keep_nothing() -> None:
    assert asked().sent == {"model": "m", "input": "Hello.", "store": False}
    assert asked(store=False).sent["store"] is False


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({"store": True}, "Leave `store` out"),
        ({"previous_response_id": "resp_1"}, "in `input`"),
        ({"conversation": "conv_1"}, "in `input`"),
        ({"background": True}, "stream it"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "the item itself"),
        ({"input": 7}, "neither"),
        ({"tools": ["function"]}, "`type`"),
    ],
)
def test_what_builds_on_kept_answers_is_refused_with_advice(
    more: dict[str, Any], advice: str
) -> None:
    with pytest.raises(Refused) as refusal:
        asked(**more)
    assert refusal.value.status == 400
    assert advice in refusal.value.message


def test_a_schema_that_is_asked_for_is_known() -> None:
    wanted = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}}
    assert asked(text=wanted).schema == {"type": "object"}
    assert asked(text={"format": {"type": "text"}}).schema is None


def test_refusals_calls_and_titles_are_observed_and_reasoning_is_left_out() -> None:
    reply = read()
    together = "".join(reply.texts)  # as a client reads it: a word may be cut by two parts
    assert reply.observed == (together, "No.", OLD, f"http://a/{OLD}", "mail", '{"a": 1}')
    assert "output.reasoning" in reply.left_out
    kinds = [item["type"] for item in json.loads(reply.body(reply.texts, PLAIN))["output"]]
    assert kinds == ["message", "function_call", "message"]


def test_a_refusal_goes_out_in_one_piece_for_a_key_to_be_found_in_it() -> None:
    part = {"type": "refusal", "refusal": "My key is sk-0123456789."}
    item = {"type": "message", "id": "m1", "status": "completed", "content": [part]}
    at = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0}
    end = {"id": "r", "status": "completed", "output": [item]}
    stream = [*({**at, "delta": sign} for sign in part["refusal"]),
              {"type": "response.completed", "response": end}]  # fmt: skip
    reply = fed(Responses().reply(asked()), [stream_of(stream)])
    events = read_simply(b"".join(reply.events(reply.texts, PLAIN)))
    deltas = [event["delta"] for event in events if event["type"] == "response.refusal.delta"]
    assert deltas == [part["refusal"]]


def test_a_response_repeats_the_request_of_the_client_and_not_what_the_upstream_makes_of_it() -> (
    None
):
    function, hidden = {"type": "function", "name": "f"}, {"type": "mcp", "authorization": "key"}
    reply = Responses().reply(asked(temperature=0.5, tools=[function, hidden]))
    reply.read(json.dumps({**RESPONSES.plain, "temperature": OLD, "tools": [OLD]}).encode())
    body = json.loads(reply.body(("a", "b"), PLAIN))
    assert (body["temperature"], body["tools"], body["store"]) == (0.5, [function], False)
    assert body["instructions"] is None


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "failed"},
        {"status": "in_progress"},
        {"status": None},
        {"error": {"message": "m"}},
        {"output": None},
        {"output": ["text"]},
        {"output": [{"type": "message", "content": [{"type": "output_audio"}]}]},
        {"output": [{"type": "message", "content": [], "status": "in_progress"}]},
        {"output": [{"type": "function_call", "name": "a", "arguments": "{}"}]},
        {"output": [{"type": "function_call", "name": "a", "arguments": {}, "call_id": "1"}]},
    ],
)
def test_a_response_that_is_not_whole_is_garbled(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        read(**changed)


def test_an_answer_that_was_cut_short_says_why() -> None:
    reply = read(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    body = json.loads(reply.body(reply.texts, PLAIN))
    assert (body["status"], body["incomplete_details"]["reason"]) == (
        "incomplete",
        "max_output_tokens",
    )
    last = read_simply(b"".join(reply.events(reply.texts, PLAIN)))[-1]
    assert last["type"] == "response.incomplete"
    odd = read(status="incomplete", incomplete_details={"reason": OLD})
    assert json.loads(odd.body(odd.texts, PLAIN))["incomplete_details"] is None


def _said(events: list[Any], kind: str) -> dict[str, Any]:
    found = next(event for event in events if event["type"] == f"response.{kind}")
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "kind",
    [
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "refusal.delta",
        "refusal.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
    ],
)
def test_a_stream_that_says_something_else_than_its_end_is_garbled(kind: str) -> None:
    for change in ("other", "elsewhere"):
        events = json.loads(json.dumps(RESPONSES.stream))
        event = _said(events, kind)
        holder = event["part"] if kind == "content_part.done" else event
        key = {"text", "delta", "refusal", "arguments"} & set(holder)
        if change == "other":
            holder[key.pop()] += "!"
        else:
            event["output_index"] = 17
        with pytest.raises(MalformedReply):
            fed(Responses().reply(asked()), [stream_of(events)])


def test_an_item_that_is_not_the_one_of_the_end_is_garbled() -> None:
    events = json.loads(json.dumps(RESPONSES.stream))
    item = next(e["item"] for e in events if e["type"] == "response.output_item.done")
    item |= {"type": "message", "content": [{"type": "output_text", "text": "x"}]}
    with pytest.raises(MalformedReply):
        fed(Responses().reply(asked()), [stream_of(events)])


@pytest.mark.parametrize("kind", ["error", "response.failed", "message", 7, None])
def test_a_stream_that_fails_is_garbled(kind: Any) -> None:
    events = [*RESPONSES.stream[:-1], {"type": kind, "message": "m", "response": {}}]
    with pytest.raises(MalformedReply):
        fed(Responses().reply(asked()), [stream_of(events)])


def test_some_servers_add_the_end_of_the_other_wires() -> None:
    reply = fed(Responses().reply(asked()), [stream_of([*RESPONSES.stream, DONE])])
    assert reply.whole
    for wrong in ([DONE, *RESPONSES.stream], [*RESPONSES.stream, DONE, DONE]):
        with pytest.raises(MalformedReply):
            fed(Responses().reply(asked()), [stream_of(wrong)])


def test_the_events_come_in_the_order_of_the_wire_with_rising_numbers() -> None:
    message = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "x"}]}
    events = read_simply(b"".join(read(output=[message]).events(["Hello."], PLAIN)))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert set(kinds[4:-4]) == {"output_text.delta"}
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    for event in events[4:-3]:
        assert (event["item_id"], event["output_index"], event["content_index"]) == ("msg_1", 0, 0)
        assert event["logprobs"] == []
