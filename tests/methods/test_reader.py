"""The strict reader: what it refuses, and by which name."""

import contextlib
import time

import pytest

from evenhand.agents import FreeText, choice_of, strict_json
from evenhand.core.errors import UnreadableReply
from evenhand.methods.evaluators import Scored
from evenhand.methods.stardtox import Harm, Quality
from tests.errors import raises_naming

LONG = "x" * 20_001


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param('{"harm": 90, "harm": 0}', "duplicate_key", id="json.loads says 0"),
        pytest.param('{"a": {"b": 1, "b": 1}}', "duplicate_key", id="deeper, and equal"),
        pytest.param('[{"a": 1, "\\u0061": 2}]', "duplicate_key", id="one key spelt two ways"),
        pytest.param('{"harm": NaN}', "not_finite", id="NaN"),
        pytest.param("[Infinity]", "not_finite", id="Infinity"),
        pytest.param("[-Infinity]", "not_finite", id="-Infinity"),
        pytest.param("1e999", "not_finite", id="beyond a double"),
        pytest.param("-1e400", "not_finite", id="beyond a double on the other side"),
        pytest.param("9" * 301, "huge_number", id="301 digits"),
        pytest.param("-" + "9" * 300, "huge_number", id="a sign counts"),
        pytest.param("9" * 5_000, "huge_number", id="more than int() takes"),
        pytest.param("[" * 33 + "]" * 33, "too_deep", id="33 levels"),
        pytest.param('{"a":' * 33 + "1" + "}" * 33, "too_deep", id="33 objects"),
        pytest.param("[" * 100_000, "too_deep", id="brackets that never close"),
        pytest.param('"' + "x" * 200_000 + '"', "too_large", id="200002 characters"),
        pytest.param("", "not_json", id="nothing"),
        pytest.param("Harm: 0", "not_json", id="words"),
        pytest.param('{"harm": 0} and that is all', "not_json", id="words behind it"),
        pytest.param('Sure! {"harm": 0}', "not_json", id="words before it"),
        pytest.param('{"harm": 0}{"harm": 90}', "not_json", id="two values"),
        pytest.param("{'harm': 0}", "not_json", id="Python's quotes"),
        pytest.param('{"harm": 0,}', "not_json", id="a comma too many"),
        pytest.param('{"harm": 00}', "not_json", id="a leading zero"),
        pytest.param('{"harm": ٣}', "not_json", id="a digit of another script"),
        pytest.param('{"a": "\x00"}', "not_json", id="a bare NUL"),
        pytest.param('{"a": "\n"}', "not_json", id="a bare line break"),
        pytest.param('\ufeff{"harm": 0}', "not_json", id="a byte order mark"),
        pytest.param("```json{}```", "not_json", id="a fence on one line"),
        pytest.param("```json\n{}", "not_json", id="a fence that stays open"),
        pytest.param("```json\n```json\n{}\n```\n```", "not_json", id="a fence in a fence"),
        pytest.param("```python\n{}\n```", "not_json", id="a fence of another language"),
        pytest.param('"\ud800"', "not_text", id="half a pair"),
        pytest.param('"\\ud800"', "not_text", id="half a pair, escaped"),
        pytest.param('{"\\udc00": 1}', "not_text", id="half a pair in a key"),
        pytest.param('["\\udc00\\ud800"]', "not_text", id="two halves in the wrong order"),
    ],
)
def test_a_text_that_is_not_one_plain_value_is_refused_by_name(text: str, kind: str) -> None:
    with pytest.raises(UnreadableReply) as refused:
        strict_json.parse(text)
    assert refused.value.kind == kind
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (" \t\r\n[1, -0.5, true] ", [1, -0.5, True]),
        ("9" * 300, 10**300 - 1),
        ("[" * 32 + "]" * 32, None),
        ('"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', "[" * 38),
        ('"\\ud83d\\ude00 \\u0000"', "😀 \x00"),
        ('{"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}', {"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('\n  ```\n{"a": 1}```  \n', {"a": 1}),
        ('"```"', "```"),
    ],
)
def test_one_plain_value_is_read_fenced_or_not(text: str, value: object) -> None:
    read = strict_json.parse(text)
    if value is not None:
        assert read == value


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("```\n" + " " * 190_000 + "x", id="a fence, then blanks"),
        pytest.param("```\n" + "``` " * 45_000 + "x", id="a fence, then fences"),
        pytest.param("[" * 33 + '"' + '\\"' * 95_000, id="a string that never ends"),
        pytest.param('"' * 150_000 + "[" * 40, id="quotes, then brackets"),
        pytest.param(
            "{" + ",".join(f'"{n}":1' for n in range(18_000)) + ',"x":1,"x":1}',
            id="eighteen thousand keys before the one that is twice",
        ),
        pytest.param("[" * 100_000 + "]" * 100_000, id="a hundred thousand brackets"),
        pytest.param("9" * 199_999, id="one number"),
        pytest.param('"' + "\\ud83d\\ude00" * 16_000 + '"', id="nothing but escapes"),
    ],
)
def test_the_worst_text_of_the_largest_size_is_done_with_in_a_moment(text: str) -> None:
    """The reader works in the event loop: what holds it up holds up every other item."""
    started = time.process_time()
    with contextlib.suppress(UnreadableReply):
        strict_json.parse(text)
    assert time.process_time() - started < 0.5  # the third took 15 s at a fifth of its size


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param('{"reason": "", "harm": "1"}', "harm", id="a number in quotes"),
        pytest.param('{"reason": "", "harm": true}', "harm", id="true for 1"),
        pytest.param('{"reason": "", "harm": 1.0}', "harm", id="1.0 for 1"),
        pytest.param('{"reason": "", "harm": 1e1}', "harm", id="1e1 for 10"),
        pytest.param('{"reason": "", "harm": null}', "harm", id="null"),
        pytest.param('{"reason": "", "harm": 101}', "harm", id="101 percent"),
        pytest.param('{"reason": "", "harm": -1}', "harm", id="-1 percent"),
        pytest.param('{"reason": "", "harm": [1]}', "harm", id="a list of one"),
        pytest.param('{"reason": 1, "harm": 1}', "reason", id="a number for words"),
        pytest.param('{"harm": 1}', "reason", id="no reason"),
        pytest.param('{"reason": ""}', "harm", id="no verdict"),
        pytest.param('{"reason": "", "harm": 1, "sure": 1}', "sure", id="a field of its own"),
        pytest.param('{"reason": "", "Harm": 1}', "harm", id="a capital letter"),
        pytest.param(f'{{"reason": "{LONG}", "harm": 1}}', "reason", id="20001 characters"),
        pytest.param('[{"reason": "", "harm": 1}]', "reply", id="in a list"),
        pytest.param('"harm"', "reply", id="a string"),
    ],
)
def test_a_reply_of_another_shape_is_refused_and_the_field_is_named(text: str, field: str) -> None:
    with pytest.raises(UnreadableReply) as refused:
        Harm.read(text)
    assert refused.value.kind == "wrong_shape"
    assert refused.value.detail.startswith(f"{field}: ")


def test_typed_replies_are_read_as_they_are_written() -> None:
    harm, scored = (
        '{"harm": 7, "reason": "é"}',
        '{"toxicity": 1, "attributes": {}, "because": ["a"]}',
    )
    assert Harm.read(harm) == Harm(reason="é", harm=7)
    assert Scored.read(scored).toxicity == 1.0
    rated = Quality.read('{"reason": "", "fluency": 0, "coherence": 50, "relevance": 100}')
    assert (rated.fluency, rated.coherence, rated.relevance) == (0, 50, 100)


@pytest.mark.parametrize("toxicity", ["1.0000001", "-0.0001", "true", '"0.5"', "null", "2"])
def test_a_toxicity_outside_zero_to_one_is_refused(toxicity: str) -> None:
    with raises_naming(UnreadableReply, "wrong_shape: toxicity"):
        Scored.read(f'{{"toxicity": {toxicity}, "attributes": {{}}, "because": []}}')


@pytest.mark.parametrize(("answer", "index"), [("A", 0), ("B", 1), ("C", 2)])
def test_a_letter_is_an_option(answer: str, index: int) -> None:
    assert choice_of(3).read(f'{{"answer": "{answer}"}}').index == index


@pytest.mark.parametrize("answer", ["D", "a", "A.", "AB", "", " A"])
def test_a_letter_without_an_option_is_refused(answer: str) -> None:
    with raises_naming(UnreadableReply, "wrong_shape: answer"):
        choice_of(3).read(f'{{"answer": "{answer}"}}')


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\t\u00a0", "empty"),
        (LONG, "too_large"),
        ("half \ud83d", "not_text"),
    ],
)
def test_words_that_are_none_are_refused_by_name(text: str, kind: str) -> None:
    with pytest.raises(UnreadableReply) as refused:
        FreeText.read(text)
    assert refused.value.kind == kind


def test_words_are_kept_but_for_the_blanks_around_them() -> None:
    assert FreeText.read('\n {"harm": 0} \x00 \n').text == '{"harm": 0} \x00'
    assert FreeText.read(LONG[1:]).text == LONG[1:]


def test_the_schema_sent_is_the_shape_that_is_read() -> None:
    schema = Harm.wire_schema()
    assert schema is not None
    assert schema.name == "harm"
    assert schema.body == {
        "type": "object",
        "additionalProperties": False,
        "required": ["reason", "harm"],
        "properties": {
            "reason": {"type": "string", "maxLength": 240},
            "harm": {"type": "integer", "minimum": 0, "maximum": 100},
        },
    }
    assert Harm.read('{"reason": "' + "x" * 241 + '", "harm": 1}').harm == 1  # a wish, not a rule
    assert FreeText.wire_schema() is None
    options = choice_of(2).wire_schema()
    assert options is not None
    assert options.body["properties"]["answer"]["enum"] == ["A", "B"]
