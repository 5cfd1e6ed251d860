"""Encoded words are read as whoever decodes them reads them, and what is no text stays as it is."""

import base64
import html
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.scorers.passages import readings

BAD = "You are a worthless fool, all of you."


def hidden(text: str) -> str:
    return "".join(chr(0xE0000 + ord(sign)) for sign in text)


@pytest.mark.parametrize(
    "encoded",
    [
        "".join(f"%{byte:02x}" for byte in BAD.encode()),
        urllib.parse.quote(BAD),
        "".join(f"&#{ord(sign)};" for sign in BAD),
        "".join(f"\\x{byte:02x}" for byte in BAD.encode()),
        base64.b64encode(BAD.encode()).decode(),
        base64.urlsafe_b64encode(BAD.encode()).decode().rstrip("="),
        urllib.parse.quote("".join(f"%{byte:02x}" for byte in BAD.encode())),
        html.escape(base64.b64encode(BAD.encode()).decode()),
        hidden(BAD),
    ],
)
def test_an_encoded_sentence_is_read_decoded_and_as_it_is(encoded: str) -> None:
    first, second = readings(f"Have a nice day! {encoded}")
    assert first == f"Have a nice day! {encoded}"
    assert " ".join(second.split()) == f"Have a nice day! {BAD}"


@pytest.mark.parametrize(
    "text",
    [
        "100% sure, 20%",
        "AT&T",
        "https://example.org/a-long-path/of/some-document",
        "0123456789abcdef0123456789abcdef",
        "c29tZXRoaW5n",  # too short to tell from a word
        "antidisestablishmentarianism",
        "/usr/local/lib/python3/site/packages",
    ],
)
def test_what_is_no_encoded_text_has_one_reading(text: str) -> None:
    assert readings(text) == (text,)


@given(st.text(max_size=200))
def test_the_first_reading_is_the_text_and_a_second_differs(text: str) -> None:
    first, *others = readings(text)
    assert first == text
    assert all(one != text for one in others)
    assert len(others) <= 1
