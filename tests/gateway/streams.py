"""Streams for the tests: made by hand, cut at random, and read by a reader that is not ours."""

import json
import os
import random
from collections.abc import Iterable, Iterator
from typing import Any

from evenhand.gateway.sse import EventReader
from evenhand.gateway.wire import UpstreamReply

TIMES = int(os.environ.get("EVENHAND_CASES", "1"))
DONE = "[DONE]"


def stream_of(events: Iterable[Any]) -> bytes:
    """Write these events as an upstream does."""
    lines = (event if event == DONE else json.dumps(event) for event in events)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def parts(data: bytes, rng: random.Random) -> Iterator[bytes]:
    """Cut the bytes anywhere: often a byte alone, sometimes nothing."""
    at = 0
    while at < len(data):
        size = rng.choice([0, 1, 1, 2, 7, 40, 300])
        yield data[at : at + size]
        at += size


def fed(reply: UpstreamReply, chunks: Iterable[bytes]) -> UpstreamReply:
    """Feed a reply with a stream that arrives in these chunks."""
    reader = EventReader()
    for chunk in chunks:
        for data in reader.feed(chunk):
            reply.feed(data)
    return reply


def read_simply(stream: bytes) -> list[Any]:
    """Read a stream as the plainest client would: events between blank lines, JSON after `data: `.
    An event that has another form is an error."""
    text = stream.decode()
    assert text.endswith("\n\n")
    found: list[Any] = []
    for event in text[:-2].split("\n\n"):
        lines = event.split("\n")
        named = [line.removeprefix("event: ") for line in lines[:-1]]
        assert lines[-1].startswith("data: "), lines
        data = lines[-1].removeprefix("data: ")
        found.append(DONE if data == DONE else json.loads(data))
        assert named in ([], [found[-1].get("type")] if data != DONE else [])
    return found
