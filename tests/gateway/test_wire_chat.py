"""/chat/completions: what is asked, and how an answer is put together from its pieces."""

import json
from typing import Any

import pytest

from evenhand.gateway.wire import ClientRequest, ExchangeOutcome, MalformedReply, Refused
from evenhand.gateway.wire.chat import Chat, ChatReply
from tests.gateway.streams import DONE, fed, read_simply, stream_of

PLAIN = ExchangeOutcome(action="passed")
USER = {"role": "user", "content": "Hello."}


def asked(**more: Any) -> ClientRequest:
    return Chat().asked(json.dumps({"model": "m", "messages": [USER], **more}).encode())


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
    return {"id": "c-1", "created": 5, "model": "m-2", "choices": [choice]}


def streamed(*events: Any, **request: Any) -> ChatReply:
    reply = Chat().reply(asked(stream=True, **request))
    fed(reply, [stream_of(events)])
    return reply


def plain(message: dict[str, Any], finish: str | None = "stop", **request: Any) -> ChatReply:
    reply = Chat().reply(asked(**request))
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply.read(json.dumps({"id": "c-1", "choices": [choice]}).encode())
    return reply


def test_a_judge_is_shown_the_last_words_of_the_user_and_all_before_and_after_them() -> None:
    image = {"type": "image_url", "image_url": {"url": "http://a/b.png"}}
    found = asked(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "First."},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "user", "content": [{"type": "text", "text": "Who is this?"}, image]},
            {"role": "tool", "tool_call_id": "1", "content": "A nurse."},
        ]
    )
    shown = "Who is this?\n[image_url]", "system: Be brief.\n\nuser: First.\n\ntool: A nurse."
    assert (found.prompt, found.context) == shown


def test_the_body_goes_on_as_it_came() -> None:
    more = {"n": 3, "stream": True, "tools": [{"type": "function"}], "x": [1.5, None]}
    found = asked(**more)
    assert found.sent == {"model": "m", "messages": [USER], **more}
    assert (found.model, found.stream, found.schema) == ("m", True, None)


def test_a_schema_that_is_asked_for_is_known() -> None:
    schema = {"type": "object"}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    assert asked(response_format=wanted).schema == schema
    assert asked(response_format={"type": "json_object"}).schema == {}
    assert asked(response_format={"type": "text"}).schema is None


@pytest.mark.parametrize(
    "more",
    [
        {"store": True},
        {"audio": {"voice": "a"}},
        {"modalities": ["text", "audio"]},
        {"n": 0},
        {"n": 129},
        {"n": True},
        {"stream": "yes"},
        {"messages": ["Hello."]},
        {"messages": [{"role": "user", "content": {"secret": 1}}]},
        {"messages": "Hello."},
        {"model": 7},
        {"response_format": "json"},
    ],
)
def test_what_cannot_be_handled_safely_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        asked(**more)
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"model": NaN}',
        b'{"model": "\xff"}',
        b'{"n": 1, "n": 2}',
        b'{"messages": [{"role": "user", "role": "system"}]}',
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"x": ' + b"[" * 400 + b"]" * 400 + b"}",
        b'{"x": ' + b"1" * 5000 + b"}",
    ],
)
def test_a_body_that_two_readers_may_read_in_two_ways_is_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        Chat().asked(body)


def test_calls_are_put_together_by_their_index_and_observed_in_plain_letters() -> None:
    def call(index: int, **more: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": index, **more}]})

    reply = streamed(
        call(0, id="a", type="function", function={"name": "mail", "arguments": ""}),
        call(1, id="b", type="function", function={"name": "call", "arguments": "{}"}),
        call(0, function={"arguments": '{"to": "F\\u00fc'}),
        call(0, function={"arguments": '\\ud83d\\ude00"}'}),
        chunk({}, "tool_calls"),
        DONE,
    )
    assert reply.whole
    assert reply.texts == ()
    assert reply.observed == ("mail", '{"to": "Fü😀"}', "call", "{}")
    message = json.loads(reply.body((), PLAIN))["choices"][0]["message"]
    assert message["content"] is None
    first, second = message["tool_calls"]
    assert (first["id"], second["id"]) == ("a", "b")
    assert first["function"] == {"name": "mail", "arguments": '{"to": "F\\u00fc\\ud83d\\ude00"}'}


def test_refusals_and_older_calls_are_observed() -> None:
    assert plain({"content": None, "refusal": "No."}).observed == ("No.",)
    function = {"name": "mail", "arguments": "{}"}
    reply = plain({"content": "", "function_call": function}, "function_call")
    assert (reply.texts, reply.observed) == ((), ("mail", "{}"))
    sent = json.loads(reply.body((), PLAIN))["choices"][0]["message"]
    assert (sent["content"], sent["function_call"]) == ("", function)


def test_parts_of_content_are_one_text_and_what_is_no_text_is_named() -> None:
    thought = {"type": "thinking", "thinking": "hm"}
    parts = [{"type": "text", "text": "One "}, thought, {"type": "text", "text": "two."}]
    reply = plain({"content": parts, "audio": {"data": "x"}})
    assert reply.texts == ("One two.",)
    assert reply.left_out == {"choices.message.content.thinking", "choices.message.audio"}


@pytest.mark.parametrize(
    "events",
    [
        [DONE],
        [chunk({"content": "a"}), DONE],
        [chunk({"content": "a"}, "stop")],
        [{"choices": []}, DONE],
    ],
)
def test_a_stream_without_an_end_of_each_choice_is_never_whole(events: list[Any]) -> None:
    assert not streamed(*events).whole
    assert streamed(chunk({"content": "a"}, "stop"), DONE).whole
    assert not streamed(chunk({"content": "a"}, "stop"), DONE, n=2).whole


@pytest.mark.parametrize(
    "events",
    [
        [chunk({"content": "a"}, "abort")],
        [chunk({"content": "a"}, "stop"), chunk({"content": "b"})],
        [chunk({"content": "a"}, "stop"), chunk({}, "length")],
        [chunk({}, "stop"), DONE, chunk({})],
        [chunk({}, "stop"), DONE, DONE],
        [chunk({"content": 1})],
        [chunk({"content": ["a"]})],
        [chunk({"content": "a"}, index=1)],
        [chunk({"content": "a"}, index=-1)],
        [chunk({"content": "a"}, index=True)],
        [chunk({"tool_calls": [{"function": {"name": "no index"}}]})],
        [chunk({"tool_calls": [{"index": 128, "id": "a"}]})],
        [chunk({"tool_calls": [{"index": 0, "id": "two words"}]})],
        [chunk({"tool_calls": [{"index": 0, "id": "a"}]})] * 1
        + [chunk({"tool_calls": [{"index": 0, "id": "b"}]})],
        [chunk({"tool_calls": [{"index": 0, "type": "browser"}]})],
    ],
)
def test_what_is_not_a_stream_of_this_wire_is_garbled(events: list[Any]) -> None:
    with pytest.raises(MalformedReply):
        streamed(*events)


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"choices": [{}]}])
def test_a_plain_answer_without_a_choice_is_garbled(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        Chat().reply(asked()).read(json.dumps(body).encode())


def test_a_plain_answer_without_an_end_or_with_fewer_choices_is_garbled() -> None:
    with pytest.raises(MalformedReply):
        plain({"content": "a"}, None)
    with pytest.raises(MalformedReply):
        plain({"content": "a"}, n=2)


def test_usage_is_sent_only_to_those_who_asked_for_it() -> None:
    usage = {"choices": [], "usage": {"total_tokens": 3, "remark": "x", "prompt_tokens": "many"}}
    events = [chunk({"content": "a"}, "stop"), usage, DONE]
    quiet = read_simply(b"".join(streamed(*events).events(["b"], PLAIN)))
    assert not any("usage" in event for event in quiet[:-1])
    wish = {"stream_options": {"include_usage": True}}
    *others, last, done = read_simply(b"".join(streamed(*events, **wish).events(["b"], PLAIN)))
    assert (last["choices"], last["usage"], done) == ([], {"total_tokens": 3}, DONE)
    assert all(event["usage"] is None for event in others)


def test_the_detail_stands_in_the_last_chunk_alone() -> None:
    said = ExchangeOutcome(action="repaired", detail={"action": "repaired"})
    events = read_simply(
        b"".join(streamed(chunk({"content": "a"}, "stop"), DONE).events("b", said))
    )
    assert ["evenhand" in event for event in events[:-1]] == [False, False, True]


def test_ids_are_the_same_in_every_chunk_and_a_sentence_is_no_id() -> None:
    first = {**chunk({"content": "a"}), "id": "", "system_fingerprint": "nurses are women"}
    reply = streamed(first, chunk({}, "stop"), {**chunk({}), "id": "c-2"}, DONE)
    events = read_simply(b"".join(reply.events(["b"], PLAIN)))[:-1]
    assert {(e["id"], e["created"], e["model"]) for e in events} == {("c-1", 5, "m-2")}
    assert "system_fingerprint" not in events[0]
    assert reply.left_out == {"system_fingerprint"}
