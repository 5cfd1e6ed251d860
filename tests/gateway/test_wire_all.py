"""What holds on every wire: texts are found however the bytes came, ours go out in their places,
and nothing else of the upstream's does."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.gateway.wire import ExchangeOutcome, MalformedReply, UpstreamReply
from tests.gateway.answers import OLD, SAMPLES, Sample
from tests.gateway.streams import DONE, TIMES, fed, parts, read_simply, stream_of

PLAIN = ExchangeOutcome(action="repaired")
TOLD = ExchangeOutcome(action="repaired", detail={"action": "repaired"})
CANARY = "canarybird"
OURS = "Nurses are people 👩‍⚕️, as é́ is a letter.\n\nSome\r\u2028are men. "


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]


def whole(sample: Sample, **changed: Any) -> Iterator[UpstreamReply]:
    """The same answer read plain and read from a stream."""
    plain = sample.reply(**changed)
    plain.read(json.dumps(sample.plain).encode())
    yield plain
    yield fed(sample.reply(**changed), [stream_of(sample.stream)])


def written(
    reply: UpstreamReply, texts: tuple[str, ...], said: ExchangeOutcome = PLAIN
) -> tuple[bytes, bytes]:
    return reply.body(texts, said), b"".join(reply.events(texts, said))


def test_a_stream_cut_at_any_byte_gives_the_texts(sample: Sample) -> None:
    """Cut at each byte at once, then in two at many places (`test_sse` cuts at every one)."""
    stream = stream_of(sample.stream)
    assert fed(sample.reply(), (bytes([byte]) for byte in stream)).texts == sample.texts
    step = max(1, len(stream) // (200 * TIMES))
    cuts = {*range(0, len(stream), step), *range(len(stream) - 60, len(stream))}
    for at in cuts:
        reply = fed(sample.reply(), [stream[:at], stream[at:]])
        assert reply.whole
        assert reply.texts == sample.texts


def test_a_stream_cut_at_random_gives_the_texts(sample: Sample) -> None:
    rng, stream = random.Random(2), stream_of(sample.stream)
    for _ in range(200 * TIMES):
        assert fed(sample.reply(), parts(stream, rng)).texts == sample.texts


def test_a_stream_that_ends_early_is_never_whole(sample: Sample) -> None:
    stream = stream_of(sample.stream)
    step = max(1, len(stream) // 300)
    for at in {*range(0, len(stream), step), len(stream) - 1}:
        assert not fed(sample.reply(), [stream[:at]]).whole
    for left in range(len(sample.stream)):
        reply = fed(sample.reply(), [stream_of(sample.stream[:left])])
        assert not reply.whole
        with pytest.raises(ValueError):
            written(reply, reply.texts)


@pytest.mark.parametrize("ours", [(OURS, "Two."), ("x", "é" * 500), ("", "y")])
def test_our_texts_stand_in_their_places_and_nothing_of_the_old_ones_is_left(
    sample: Sample, ours: tuple[str, ...]
) -> None:
    texts = ours[: len(sample.texts)]
    for reply in whole(sample):
        body, stream = written(reply, texts, TOLD)
        assert sample.texts_of_body(json.loads(body)) == texts
        assert sample.texts_of_stream(read_simply(stream)) == texts
        for out in (body, stream):
            assert OLD not in json.dumps([json.loads(body), read_simply(stream)])
            assert OLD.encode() not in out
            assert b"reasoning_content" not in out
        assert json.loads(body)["evenhand"] == TOLD.detail


def test_texts_that_passed_go_out_as_they_came(sample: Sample) -> None:
    for reply in whole(sample):
        body, stream = written(reply, reply.texts)
        assert sample.texts_of_body(json.loads(body)) == sample.texts
        assert sample.texts_of_stream(read_simply(stream)) == sample.texts
        assert reply.left_out  # the reasoning


def test_what_was_written_is_itself_an_answer_of_the_wire(sample: Sample) -> None:
    for reply in whole(sample):
        body, stream = written(reply, reply.texts)
        again = sample.reply()
        again.read(body)
        for read in (again, fed(sample.reply(), [stream])):
            assert read.texts == sample.texts
            assert read.observed == reply.observed
            assert read.body(sample.texts, PLAIN) == body


def test_as_many_texts_must_be_given_as_there_were(sample: Sample) -> None:
    for reply in whole(sample):
        for wrong in ((), (*reply.texts, "one more")):
            with pytest.raises(ValueError):
                reply.body(wrong, PLAIN)
            with pytest.raises(ValueError):
                reply.events(wrong, PLAIN)  # at once, before a byte is sent


@pytest.mark.parametrize(
    "stray",
    [b"\x00", b"null", b"[]", b"{}", b'"text"', b'{"error": {"message": "m"}}', b"{"],
)
def test_a_stray_event_garbles_the_stream(sample: Sample, stray: bytes) -> None:
    events = [json.dumps(e).encode() if e != DONE else b"[DONE]" for e in sample.stream]
    for at in (0, 1, len(events) // 2, len(events) - 1, len(events)):
        reply = sample.reply()
        with pytest.raises(MalformedReply):
            for event in [*events[:at], stray, *events[at:]]:
                reply.feed(event)


def test_no_word_in_a_field_that_we_do_not_know_goes_out(sample: Sample) -> None:
    rng, outcomes = random.Random(3), {"garbled": 0, "clean": 0}
    for _ in range(500 * TIMES):
        reply = sample.reply()
        try:
            if rng.random() < 0.5:
                body = json.dumps(_spoilt(sample.plain, rng))
                reply.read(_maybe_cut(body.encode(), rng))
            else:
                place = rng.randrange(len(sample.stream) - 1)
                events = list(sample.stream)
                events[place] = _spoilt(events[place], rng) if events[place] != DONE else DONE
                fed(reply, [_maybe_cut(stream_of(events), rng)])
                if not reply.whole:
                    raise MalformedReply("cut")
        except MalformedReply:
            outcomes["garbled"] += 1
            continue
        outcomes["clean"] += 1
        for texts in (reply.texts, tuple("ours" for _ in reply.texts)):
            out = b"".join(written(reply, texts)).decode()
            # The input of a call is an object, whose every word is checked.
            assert CANARY not in out or any(CANARY in text for text in reply.observed)
        assert not any(CANARY in name for name in reply.left_out)
    assert min(outcomes.values()) > 50, outcomes


def _maybe_cut(data: bytes, rng: random.Random) -> bytes:
    return data if rng.random() < 0.9 else data[: rng.randrange(len(data))]


def _spoilt(answer: Any, rng: random.Random) -> Any:
    """The answer with a canary in one to three places where no text belongs."""
    spoilt = json.loads(json.dumps(answer))
    for _ in range(rng.choice([1, 1, 2, 3])):
        _spoil(rng.choice(list(_objects(spoilt))), rng)
    return spoilt


def _spoil(place: dict[str, Any], rng: random.Random) -> None:
    canary: Any = rng.choice(
        [CANARY, [CANARY], {"text": CANARY}, {f"{CANARY} is": 1}, [{"type": "x", "text": CANARY}]]
    )
    names = ["reasoning", "thinking", "audio", "x", "content_filter_results", f"{CANARY} here"]
    match rng.randrange(4):
        case 0 | 1:
            place[rng.choice(names)] = canary
        case 2 if place:  # another type for a field that we know
            place[rng.choice(list(place))] = rng.choice(
                [canary if not isinstance(canary, str) else [canary], 7, None, True, [], {}]
            )
        case _ if place:
            del place[rng.choice(list(place))]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
