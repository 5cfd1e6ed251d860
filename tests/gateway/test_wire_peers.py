"""Failures that other gateways had in reading and writing answers, each as a test of ours."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.gateway.sse import EventReader, comment
from evenhand.gateway.wire import ExchangeOutcome, MalformedReply, Refused
from tests.errors import raises_naming
from tests.gateway.answers import CHAT, OLD, SAMPLES, Sample
from tests.gateway.streams import DONE, TIMES, fed, read_simply, stream_of

PLAIN = ExchangeOutcome(action="repaired")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=30 * TIMES)
@given(first=TEXTS, second=TEXTS)
def test_no_blank_is_added_where_a_text_is_cut(name: str, first: str, second: str) -> None:
    """NVIDIA-NeMo/Guardrails#1197 sent "ass isting"."""
    sample = SAMPLES[name]
    reply = fed(sample.reply(), [stream_of(sample.stream)])
    events = read_simply(b"".join(reply.events((first, second), PLAIN)))
    assert sample.texts_of_stream(events) == (first, second)


def test_an_error_never_quotes_what_was_found() -> None:
    """api7/aisix#153 put the matched words into the error."""
    bad: list[Any] = [
        {"error": {"message": OLD}},
        {"choices": [{"index": 0, "delta": {"content": {OLD: OLD}}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": OLD}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "type": OLD}]}}]},
        {"choices": OLD},
        {"type": OLD},
    ]
    for sample in SAMPLES.values():
        for event in bad:
            with pytest.raises(MalformedReply) as garbled:
                sample.reply().feed(json.dumps(event).encode())
            shown = f"{garbled.value!r} {garbled.value.__cause__!r}"
            assert OLD not in shown
        for request in ({"messages": OLD}, {"prompt": {OLD: 1}}, {"input": {OLD: 1}}, {"model": 1}):
            body = json.dumps({**request, "stream": OLD}).encode()
            with pytest.raises(Refused) as refusal:
                sample.wire.asked(body)
            assert OLD.encode() not in refusal.value.body()


def test_an_answer_that_is_not_whole_cannot_be_written(sample: Sample) -> None:
    """BerriAI/litellm#35257 told of success where the guard had been skipped."""
    reply = fed(sample.reply(), [stream_of(sample.stream[:-1])])
    for write in (reply.body, reply.events):
        with raises_naming(ValueError, "not whole"):
            write(sample.texts, PLAIN)


def test_no_chunk_of_a_text_is_empty(sample: Sample) -> None:
    """BerriAI/litellm#20027 emptied every fifth chunk."""
    reply = fed(sample.reply(), [stream_of(sample.stream)])
    events = read_simply(b"".join(reply.events(("a" * 300, "b" * 300), PLAIN)))
    deltas = [event["delta"] for event in events if event != DONE and "delta" in event]
    for event in events:
        for choice in event.get("choices", ()) if event != DONE else ():
            if choice["finish_reason"] is None and "role" not in choice.get("delta", {}):
                delta = choice.get("delta", {"content": choice.get("text")})
                deltas += [delta["content"]] if "content" in delta else []
    assert len(deltas) > 100
    assert all(deltas)


def test_a_comment_or_a_field_that_nobody_needs_does_no_harm(sample: Sample) -> None:
    """BerriAI/litellm#38009: a stray chunk of bytes destroyed the answer. Ours either is part of
    the standard and skipped, or the answer is refused as a whole (`test_wire_all`)."""
    reader, reply = EventReader(), sample.reply()
    for event in sample.stream:
        for data in reader.feed(b"id: 1\nretry: 5\n\n" + comment("here") + stream_of([event])):
            reply.feed(data)
    assert reply.texts == sample.texts


def test_calls_of_tools_are_held_until_the_verdict_and_shown_to_it() -> None:
    """In a review of BerriAI/litellm#40784 their deltas went out before the verdict."""
    reply = fed(CHAT.reply(), [stream_of(CHAT.stream)])
    assert '{"a": 1}' in reply.observed
    events = read_simply(b"".join(reply.events(("one", "two"), PLAIN)))[:-1]
    calls = [c["delta"] for e in events for c in e["choices"] if "tool_calls" in c["delta"]]
    assert [call["tool_calls"][0]["function"]["arguments"] for call in calls] == ['{"a": 1}']


def test_no_choice_ends_before_the_last_word(sample: Sample) -> None:
    """A remark in LiteLLM's source: clients stop reading at `finish_reason`."""
    reply = fed(sample.reply(), [stream_of(sample.stream)])
    events = read_simply(b"".join(reply.events(("one", "two"), PLAIN)))
    ends = [place for place, event in enumerate(events) if _ends(event)]
    words = [place for place, event in enumerate(events) if "two"[-1] in _words(event)]
    assert min(ends) > max(words)


def _ends(event: Any) -> bool:
    if event == DONE or "choices" not in event:
        return event != DONE and event["type"] in ("response.completed", "message_delta")
    return any(choice["finish_reason"] for choice in event["choices"])


def _words(event: Any) -> str:
    if event == DONE or "choices" not in event:
        delta = event.get("delta", "") if event != DONE else ""
        return delta if isinstance(delta, str) else delta.get("text", "")
    return "".join(
        c.get("text") or c.get("delta", {}).get("content") or "" for c in event["choices"]
    )
