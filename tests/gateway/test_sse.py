"""Events are read alike however their bytes were cut, and what is no stream is refused."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.gateway import sse
from evenhand.gateway.wire import MalformedReply
from tests.errors import raises_naming
from tests.gateway.streams import TIMES, parts

# Each kind of line end, comments, fields that nobody asked for, data of several lines or none.
STREAM = (
    b"\xef\xbb\xbfdata: one\n\n"
    b": a comment\n\n"
    b"event: word\r\nid: 7\r\nretry: 3\r\ndata:two\r\n\r\n"
    b"data: three\rdata:  four\r\r"
    b"data\ndata: \n\n"
    b"data\n\n"
    b"database: no\n\n"
    b"data: f\xc3\xbcnf \xf0\x9f\x98\x80\n\r\n"
    b"data: cut off"
)
DATA = [b"one", b"two", b"three\n four", b"\n", "fünf 😀".encode()]


def read(*chunks: bytes) -> list[bytes]:
    reader = sse.EventReader()
    return [data for chunk in chunks for data in reader.feed(chunk)]


def test_each_form_that_the_standard_allows_is_read() -> None:
    assert read(STREAM) == DATA


def test_a_stream_cut_at_any_byte_is_read_alike() -> None:
    for at in range(len(STREAM) + 1):
        assert read(STREAM[:at], STREAM[at:]) == DATA
    assert read(*(bytes([byte]) for byte in STREAM)) == DATA


def test_a_stream_cut_anywhere_ten_thousand_times_is_read_alike() -> None:
    rng = random.Random(1)
    for _ in range(10_000 * TIMES):
        assert read(*parts(STREAM, rng)) == DATA


@given(st.lists(st.binary(max_size=30), max_size=12))
def test_any_bytes_are_read_as_when_they_come_at_once_or_are_refused_in_both(
    chunks: list[bytes],
) -> None:
    def outcome(*chunks: bytes) -> list[bytes] | None:
        try:
            return read(*chunks)
        except MalformedReply:
            return None

    assert outcome(*chunks) == outcome(b"".join(chunks))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))))
def test_what_is_written_is_read_back(texts: list[str]) -> None:
    stream = b"".join(sse.event(text.encode(), "name") + sse.comment("here") for text in texts)
    assert read(stream) == [text.encode() for text in texts if text]


def test_an_event_is_never_two_lines() -> None:
    for end in (b"\n", b"\r"):
        with raises_naming(ValueError, "one line"):
            sse.event(b"data: [DONE]" + end)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98"])
def test_bytes_that_are_no_text_are_refused(bad: bytes) -> None:
    for line in (b"data: ", b": ", b"event: "):
        with pytest.raises(MalformedReply):
            read(line + bad + b"\n\n")


def test_an_event_may_be_as_long_as_its_bound_and_no_longer() -> None:
    def feed(chunks: list[bytes]) -> list[bytes]:
        reader = sse.EventReader(max_event=10)
        return [data for chunk in chunks for data in reader.feed(chunk)]

    assert feed([b"data:3456\n\n"]) == [b"3456"]
    for long in ([b"data: 7890"] * 2, [b"data:4\n"] * 6, [b"x"] * 11, [b": comment that never"]):
        with raises_naming(MalformedReply, "event", "too long"):
            feed(long)


def test_a_stream_may_be_as_long_as_its_bound_and_no_longer() -> None:
    reader = sse.EventReader(max_stream=6)
    reader.feed(b":\n\n:\n\n")
    with raises_naming(MalformedReply, "stream", "too long"):
        reader.feed(b"\n")
