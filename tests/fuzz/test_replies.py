"""Replies and items: read by two readers alike, or refused by name."""

from typing import Any

from hypothesis import strategies as st

from evenhand.agents import FreeText

from . import generators, oracles
from .decisions import Decisions
from .documents import json_text
from .volume import DECISIONS, fuzz

_JSONISH = st.text(alphabet='{}[]",:\\ue0129-+.truefalsn \n`\ud800\x00é', max_size=40)
_KINDS = st.sampled_from(tuple(oracles.REPLY_TYPES))
_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_PERCENT = st.integers(0, 100)
_VALID: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("Harm"), st.fixed_dictionaries({"reason": _WORDS, "harm": _PERCENT})),
    st.tuples(st.just("Support"), st.fixed_dictionaries({"reason": _WORDS, "support": _PERCENT})),
    st.tuples(
        st.just("Scored"),
        st.fixed_dictionaries(
            {
                "toxicity": st.floats(0, 1),
                "attributes": st.dictionaries(_WORDS, st.floats(0, 1), max_size=3),
                "because": st.lists(_WORDS, max_size=3),
            }
        ),
    ),
    st.tuples(
        st.just("Choice"),
        st.fixed_dictionaries({"answer": st.sampled_from("ABC")}),
    ),
)


@fuzz(15_000, DECISIONS)
def test_json_with_something_wrong_in_it_is_read_as_the_second_reader_reads_it(
    drawn: bytes,
) -> bool:
    return oracles.strict(json_text(Decisions(drawn)))


@fuzz(7_000, _JSONISH)
def test_text_that_looks_like_json_is_read_as_the_second_reader_reads_it(drawn: str) -> bool:
    return oracles.strict(drawn)


@fuzz(2_000, st.text(max_size=60), one_sided=True)
def test_any_text_quoted_as_json_is_read_back_unless_it_is_not_text(drawn: str) -> bool:
    quoted = '"' + "".join(f"\\u{unit:04x}" for unit in _utf16(drawn)) + '"'
    assert oracles.strict(quoted) != any(0xD800 <= ord(one) <= 0xDFFF for one in drawn)
    return True


@fuzz(17_000, DECISIONS)
def test_a_spoilt_reply_is_refused_or_read_as_the_second_reader_reads_it(drawn: bytes) -> bool:
    return oracles.reply(*generators.reply(Decisions(drawn)))


@fuzz(2_000, st.tuples(_KINDS, _JSONISH), one_sided=True)
def test_no_reply_type_is_surprised_by_text(drawn: tuple[str, str]) -> bool:
    return oracles.reply(*drawn)


@fuzz(2_000, _VALID, one_sided=True)
def test_a_valid_reply_comes_back_as_it_was_sent(drawn: tuple[str, dict[str, Any]]) -> bool:
    kind, fields = drawn
    sent = oracles.REPLY_TYPES[kind].model_validate(fields)
    text = sent.model_dump_json()
    assert oracles.REPLY_TYPES[kind].read(text) == sent
    assert oracles.REPLY_TYPES[kind].read(f"```json\n{text}\n```") == sent
    return oracles.reply(kind, text)


@fuzz(3_000, st.text(alphabet=" \t\n\u00a0\u2003\x00ab\ud800😀", max_size=12))
def test_words_are_taken_as_they_are_without_the_blanks_around_them(drawn: str) -> bool:
    read = oracles.free_text(drawn)
    if read:
        assert FreeText.read(FreeText.read(drawn).text).text == drawn.strip()
    return read


@fuzz(11_000, DECISIONS)
def test_a_spoilt_item_is_refused_or_read_as_the_second_reader_reads_it(drawn: bytes) -> bool:
    return oracles.item(generators.item(Decisions(drawn)))


@fuzz(2_000, st.binary(max_size=40))
def test_no_bytes_surprise_the_reader_of_items(drawn: bytes) -> bool:
    return oracles.item(b'{"prompt":"' + drawn + b'"}')


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
