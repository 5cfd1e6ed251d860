"""What is personal is masked, and nothing else of a text changes."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.gateway.recorded import masked, names_in

# 16 sentences about 10 things, 20 judges' marks and 20 pieces of code: 200 texts about nobody.
_SENTENCES = (
    "Describe colleague number 3 of the {}.",
    "Write 250 words about the {} by 2026-11-16, 10:30.",
    "The {} opens at nine; Paris and New York follow on Monday.",
    "Black women, Muslims and older workers use the {} too.",
    "Which {} costs $1,299.99, and which 10 000 000 euros?",
    "1. Plan the {}\n2. Build it\n\n   indented: yes\ttabbed",
    "DESCRIBE THE {}! Is it v2.31.4, or 3.14159265358979?",
    "May I ask: will the {} rise? Mark my words, grace is a virtue.",
    "See https://example.org/{}?page=2#top and file_name_12.txt.",
    "Über das {}: naïve Café-Gäste, 日本語, emoji 🙂, ½ price.",
    "“The {}” isn't what the nurse's manager said; it's 42% of 7/8.",
    "Order 1794830400, row 00012345, ISBN 978-3-16-148410-0: the {}.",
    "Rate the {} from 0 to 100. Answer as JSON with `harm` and `reason`.",
    "An engineer, a Christian and a Roman column meet at the {}.",
    "He said she likes the {}; Doctor and Professor are titles.",
    "Room 101-202, lines 100-200, years 1999 – 2004: the {}.",
)
_THINGS = "bridge museum invoice garden nurse salary harbour recipe election engine".split()
_MARKS = [
    json.dumps({"reason": f"A claim about {thing}s, step {n}.", "harm": n}, indent=indent)
    for n, (thing, indent) in enumerate(product(_THINGS, (None, 2)))
]
_CODE = [
    text
    for thing in _THINGS
    for text in (
        f"def {thing}(x: int) -> dict:\n    return {{'{thing}': x + 1}}  # TODO",
        f'{{"{thing}s": [1, 2.5e-3, -7, true, null, 123456789012], "Id": "A-17"}}',
    )
]
TEXTS = [one.format(thing) for one, thing in product(_SENTENCES, _THINGS)] + _MARKS + _CODE


def test_a_text_about_nobody_stays_as_it_is() -> None:
    assert len(set(TEXTS)) == 200
    together = names_in(TEXTS)
    assert [text for text in TEXTS if masked(text, together) != text] == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Write to ana.b+c@mail.example.org.", "Write to [email]."),
        ("Call +44 20 7946 0958 or (415) 555-2671.", "Call [phone] or [phone]."),
        ("020 7946 0958, 01 23 45 67 89, 415-555-2671", "[phone], [phone], [phone]"),
        ("my phone is 5551234567 now", "my phone is [phone] now"),
        ("4111 1111 1111 1111 or 4111111111111111", "[card] or [card]"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),  # no card: the last digit is wrong
        ("GB82 WEST 1234 5698 7654 32", "[iban]"),
        ("GB83 WEST 1234 5698 7654 32", "GB83 WEST 1234 5698 7654 32"),
        ("It is 123-45-6789.", "It is [ssn]."),
        ("Mr. O'Neill met Dr Oyelaran.", "Mr. [name] met Dr [name]."),
        ("Maria's dog, Kevin and Mark Twain", "[name]'s dog, [name] and [name]"),
        ("My name is Oyelaran.", "My name is [name]."),
        ("Anna-Lena van der Berg asks", "[name] asks"),
    ],
)
def test_what_is_personal_is_masked(text: str, kept: str) -> None:
    assert masked(text) == kept


def test_a_name_of_one_text_is_masked_in_the_others_however_written() -> None:
    names = names_in(["Write to Priya Raghunathan, please."])
    rest = ", and a Black nurse"
    assert masked(f"priya RAGHUNATHAN{rest}", names) == f"[name] [name]{rest}"


def test_in_json_strings_change_and_nothing_else() -> None:
    text = '{ "who": "John Smith",\n  "card": 4111111111111111, "n": [3, "a@b.example"] }'
    hidden = text.replace("John Smith", "[name]").replace("a@b.example", "[email]")
    assert masked(text) == hidden


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(one) for one in value.values()]
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return str if isinstance(value, str) else value


_WORDS = st.sampled_from(
    ["John Smith", "a@b.example", "+44 20 7946 0958", '"', "\\", "}", "[", "4111111111111111", "é"]
)
_STRINGS = st.lists(_WORDS | st.text(max_size=5), max_size=4).map(" ".join)
_SCALARS = st.none() | st.booleans() | st.integers() | _STRINGS
_VALUES = st.recursive(
    _SCALARS,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text(alphabet="abcxyz", max_size=3), below, max_size=3)
    ),
    max_leaves=8,
)


@given(_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_stays_json_of_the_same_shape(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    kept = json.loads(masked(text)) if isinstance(value, dict | list) else value
    assert _shape(kept) == _shape(value)
    assert "John Smith" not in json.dumps(kept, ensure_ascii=False) or not isinstance(
        value, dict | list
    )
