"""The OpenAI wire format: what is sent, and what is made of what comes back."""

import json
from typing import Any

import pytest

from evenhand.core import Message, Usage
from evenhand.models.base import ModelRequest, ReplySchema, Sample, TokenLogprob
from evenhand.models.wire import (
    BadBody,
    Dialect,
    JsonForm,
    decode,
    encode,
    error_text,
    model_names,
)
from tests.errors import raises_naming

HELLO = (Message("system", "Be brief."), Message("user", "hello"))
SCHEMA = ReplySchema("verdict", {"type": "object", "properties": {"harm": {"type": "integer"}}})
CHAT = ModelRequest(messages=HELLO)


def sent(request: ModelRequest, dialect: Dialect | None = None) -> dict[str, Any]:
    return dict(json.loads(encode(request, "m", dialect or Dialect())))


def body(*choices: dict[str, Any], **rest: Any) -> bytes:
    return json.dumps({"choices": choices, **rest}).encode()


def said(text: Any, **rest: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", **rest}


# -- what is sent ----------------------------------------------------------------------------------


def test_a_chat_is_its_messages_and_nothing_that_was_not_asked_for() -> None:
    assert sent(CHAT) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
        ],
    }


def test_settings_that_were_given_are_sent_zero_included() -> None:
    request = ModelRequest(
        messages=HELLO, temperature=0.0, top_p=0.9, max_tokens=5, seed=0, n=3, stop=("\n",)
    )
    given = {name: said for name, said in sent(request).items() if name != "messages"}
    assert given == {
        "model": "m",
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 5,
        "seed": 0,
        "n": 3,
        "stop": ["\n"],
    }


def test_a_text_to_continue_is_sent_as_a_prompt() -> None:
    request = ModelRequest(prompt="The nurse said", max_tokens=0, logprobs=5, echo=True)
    assert sent(request) == {
        "model": "m",
        "prompt": "The nurse said",
        "max_tokens": 0,
        "logprobs": 5,
        "echo": True,
    }


def test_chat_asks_for_log_probabilities_with_two_fields() -> None:
    request = sent(ModelRequest(messages=HELLO, logprobs=0))
    assert (request["logprobs"], request["top_logprobs"]) == (True, 0)


def test_an_endpoint_is_held_to_the_schema_where_it_can_be() -> None:
    request = sent(ModelRequest(messages=HELLO, schema=SCHEMA))
    assert request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA.body},
    }
    assert len(request["messages"]) == 2


@pytest.mark.parametrize(
    ("form", "response_format"),
    [(JsonForm.OBJECT, {"type": "json_object"}), (JsonForm.WORDS, None)],
)
def test_an_endpoint_that_cannot_be_held_to_a_schema_is_told_it(
    form: JsonForm, response_format: dict[str, str] | None
) -> None:
    request = sent(ModelRequest(messages=HELLO, schema=SCHEMA), Dialect(form=form))
    assert request.get("response_format") == response_format
    note = request["messages"][-1]
    assert note["role"] == "user"
    assert json.dumps(SCHEMA.body, separators=(",", ":")) in note["content"]


def test_forms_step_down_from_schema_to_object_to_words_and_no_further() -> None:
    assert JsonForm.SCHEMA.weaker() is JsonForm.UNBOUNDED
    assert JsonForm.UNBOUNDED.weaker() is JsonForm.OBJECT
    assert JsonForm.OBJECT.weaker() is JsonForm.WORDS
    assert JsonForm.WORDS.weaker() is None


@pytest.mark.parametrize(
    ("status", "words", "typed", "instead"),
    [
        (400, "response_format is not supported", True, Dialect(form=JsonForm.UNBOUNDED)),
        (500, "failed to parse grammar", True, Dialect(form=JsonForm.UNBOUNDED)),
        (400, "response_format is not supported", False, None),
        (401, "no schema for you", True, None),
        (400, "prompt is too long", True, None),
        (400, "use max_completion_tokens", False, Dialect(length_field="max_completion_tokens")),
    ],
)
def test_an_objection_to_the_way_of_asking_leads_to_another_way(
    status: int, words: str, typed: bool, instead: Dialect | None
) -> None:
    request = ModelRequest(messages=HELLO, schema=SCHEMA if typed else None, max_tokens=9)
    assert Dialect().instead(status, words, request) == instead


@pytest.mark.parametrize(
    ("words", "request_with", "dropped"),
    [
        ("stop_sequences: Extra inputs are not permitted", {"stop": ("x",)}, "stop"),  # Anthropic's
        ("`temperature` is deprecated for this model.", {"temperature": 0.0}, "temperature"),
    ],
)
def test_a_field_is_known_by_the_name_that_a_provider_has_for_it(
    words: str, request_with: dict[str, Any], dropped: str
) -> None:
    request = ModelRequest(messages=HELLO, **request_with)
    assert Dialect().instead(400, words, request) == Dialect(dropped=frozenset({dropped}))
    assert Dialect().instead(400, words, request, fixed=[dropped]) is None


def test_the_length_field_that_an_endpoint_wants_is_used_on_chats_only() -> None:
    dialect = Dialect(length_field="max_completion_tokens")
    chat = sent(ModelRequest(messages=HELLO, max_tokens=5), dialect)
    assert (chat.get("max_completion_tokens"), chat.get("max_tokens")) == (5, None)
    text = sent(ModelRequest(prompt="p", max_tokens=5), dialect)
    assert (text.get("max_completion_tokens"), text.get("max_tokens")) == (None, 5)


# -- what comes back -------------------------------------------------------------------------------


def test_a_chat_answer_is_its_text_its_usage_and_who_served_it() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    answer = decode(body(said("hi"), usage=usage, model="m-2"), CHAT)
    assert answer == ((Sample("hi", "stop"),), Usage(9, 4), "m-2")


def test_a_continued_text_is_its_text() -> None:
    samples, usage, served_by = decode(
        body({"text": " hi", "finish_reason": "length"}), ModelRequest(prompt="p")
    )
    assert (samples, usage, served_by) == ((Sample(" hi", "length"),), None, "")


def test_as_many_samples_are_taken_as_were_asked_for() -> None:
    three = body(said("a"), said("b"), said("c"))
    samples, _, _ = decode(three, ModelRequest(messages=HELLO, n=2))
    assert [sample.text for sample in samples] == ["a", "b"]
    with raises_naming(BadBody, "4 samples", 3):
        decode(three, ModelRequest(messages=HELLO, n=4))


def test_log_probabilities_of_a_chat_are_a_list_of_tokens() -> None:
    tokens = [
        {"token": "h", "logprob": -0.5, "top_logprobs": [{"token": "H", "logprob": -1.5}]},
        {"token": "i", "logprob": -0.25, "bytes": None},
    ]
    (sample,), _, _ = decode(
        body(said("hi", logprobs={"content": tokens})), ModelRequest(messages=HELLO, logprobs=1)
    )
    assert sample.logprobs == (TokenLogprob("h", -0.5, (("H", -1.5),)), TokenLogprob("i", -0.25))


def test_log_probabilities_of_a_continued_text_are_parallel_lists() -> None:
    lists = {
        "tokens": ["The", " nurse"],
        "token_logprobs": [None, -2.5],
        "top_logprobs": [None, {" nurse": -2.5, " boss": -3.5}],
    }
    request = ModelRequest(prompt="The nurse", logprobs=2, echo=True)
    (sample,), _, _ = decode(body({"text": "The nurse", "logprobs": lists}), request)
    assert sample.logprobs == (
        TokenLogprob("The", None),
        TokenLogprob(" nurse", -2.5, ((" nurse", -2.5), (" boss", -3.5))),
    )


def test_a_thought_in_a_field_of_its_own_has_its_tokens_taken_out_of_the_list() -> None:
    words = ("No", ", I", " think", "</think>", "\n\n", "Yes", "<|im_end|>")
    tokens = [{"token": word, "logprob": -0.5} for word in words]
    choice = {
        "message": {"content": "\n\nYes", "reasoning_content": "No, I think"},
        "logprobs": {"content": tokens},
    }
    (sample,), _, _ = decode(body(choice), ModelRequest(messages=HELLO, logprobs=1))
    assert (sample.text, sample.thinking) == ("Yes", "No, I think")
    assert sample.logprobs == (TokenLogprob("Yes", -0.5),)


def test_log_probabilities_that_nobody_asked_for_are_left_alone() -> None:
    (sample,), _, _ = decode(body(said("hi", logprobs={"content": "?"})), CHAT)
    assert sample.logprobs is None


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": [{"token": "h"}]},
        {"content": [1]},
        {"content": [{"token": 1, "logprob": -1}]},
        {"content": [{"token": ["a"], "logprob": -1}]},
        {"content": [{"token": "a", "logprob": "-1"}]},
        {"content": [{"token": "a", "logprob": True}]},
        {"content": [{"token": "a", "logprob": 700}]},  # e to its power is no number
        {"content": [{"token": "a", "logprob": -1, "top_logprobs": 5}]},
        {
            "content": [
                {"token": "a", "logprob": -1, "top_logprobs": [{"token": {}, "logprob": -1}]}
            ]
        },
        {
            "content": [
                {"token": "a", "logprob": -1, "top_logprobs": [{"token": "", "logprob": []}]}
            ]
        },
        {"tokens": [{}], "token_logprobs": [-1]},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [{"a": [[]]}]},
        {"tokens": ["a"], "token_logprobs": [-1], "top_logprobs": [{"a": None}]},
        {"tokens": ["a", "b"], "token_logprobs": [-1]},
        {"tokens": ["a"]},
        {},
    ],
)
def test_log_probabilities_in_another_shape_are_a_bad_body(logprobs: dict[str, Any]) -> None:
    with raises_naming(BadBody, "log-probabilities"):
        decode(body(said("hi", logprobs=logprobs)), ModelRequest(messages=HELLO, logprobs=1))


def streamed(*pieces: dict[str, Any]) -> Sample:
    ended = ({"index": pieces[-1].get("index", 0), "delta": {}, "finish_reason": "stop"},)
    chunks = [json.dumps({"choices": [piece]}) for piece in (*pieces, *ended)]
    (sample,), _, _ = decode("".join(f"data: {chunk}\n\n" for chunk in chunks).encode(), CHAT)
    return sample


@pytest.mark.parametrize("field", ["reasoning_content", "thinking", "thinking_blocks"])
def test_parts_in_a_field_for_thoughts_are_no_part_of_the_streamed_answer(field: str) -> None:
    thought = {"delta": {field: [{"type": "text", "text": "Hm."}]}}
    sample = streamed(thought, {"delta": {"content": "Yes."}})
    assert (sample.text, sample.thinking) == ("Yes.", "Hm.")


def test_parts_in_other_fields_of_a_stream_are_left_alone() -> None:
    cited = {"delta": {"annotations": [{"type": "url_citation", "text": "a page"}, "another"]}}
    parts = {"delta": {"content": [{"type": "text", "text": "Yes."}]}}
    sample = streamed(cited, parts)
    assert (sample.text, sample.thinking) == ("Yes.", "")


def test_a_stream_may_say_null_for_no_calls_and_for_the_first_choice() -> None:
    nulls = {"index": None, "delta": {"content": "Yes.", "tool_calls": None}}
    assert streamed(nulls, {"index": 0, "delta": {"content": " No."}}).text == "Yes. No."


def test_a_streamed_choice_whose_index_is_no_number_is_a_bad_body() -> None:
    with raises_naming(BadBody, "'1'"):
        streamed({"index": 0, "delta": {"content": "a"}}, {"index": "1", "delta": {}})


def test_a_refusal_is_an_answer_in_words_and_silence_an_empty_one() -> None:
    refusal = {"message": {"content": None, "refusal": "I will not."}}
    assert decode(body(refusal), CHAT)[0][0].text == "I will not."
    assert decode(body({"message": {"content": None}}), CHAT)[0][0].text == ""


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {},
        {"prompt_tokens": -1},
        {"prompt_tokens": True},
        {"prompt_tokens": 1.0},
        {"prompt_tokens": "1"},
        {"prompt_tokens": 2**31},
        {"prompt_tokens": 1, "completion_tokens": None},
    ],
)
def test_usage_that_is_not_two_counts_is_unknown_and_never_nought(usage: Any) -> None:
    assert decode(body(said("hi"), usage=usage), CHAT)[1] is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b'{"choices": [{"message": {"content": "h', "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"choices": [{"message": {"content": NaN}}]}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "JSON object"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": {"0": 1}}', "no choices"),
        (b'{"choices": [1]}', "not an object"),
        (b'{"choices": [{}]}', "no text"),
        (b'{"choices": [{"message": {"content": 1}}]}', "no text"),
        (b'{"choices": [{"text": "hi"}]}', "no text"),
    ],
)
def test_a_body_that_breaks_the_promise_is_a_bad_body_with_the_reason(
    data: bytes, why: str
) -> None:
    with raises_naming(BadBody, why):
        decode(data, CHAT)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"error": {"message": "no such model", "code": 404}}', "no such model"),
        (b'{"error": "no"}', "no"),
        (b'{"detail": "no"}', "no"),
        (b'{"message": "no"}', "no"),
        (b"<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
        (b'{"error": {"code": 7}}', '{"error": {"code": 7}}'),
        (b'{"error": ""}', '{"error": ""}'),
        (b'{"detail": [{"loc": ["n"]}]}', '{"detail": [{"loc": ["n"]}]}'),
        (b"[" * 1_000 + b"]" * 1_000, "[" * 1_000 + "]" * 1_000),
        (b"x" * 3_000, "x" * 3_000),
    ],
)
def test_an_error_is_told_in_the_servers_own_words(data: bytes, words: str) -> None:
    assert error_text(data) == words


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b'{"data": [{"id": "a"}, {"id": "b"}]}', ("a", "b")),
        (b'{"data": []}', ()),
        (b'{"models": []}', None),
        (b"[]", None),
        (b"no", None),
        (b'{"data": [{"id": ' + b"[" * 1_000 + b"]" * 1_000 + b"}]}", None),
    ],
)
def test_a_list_of_models_is_read_or_there_is_none(
    data: bytes, names: tuple[str, ...] | None
) -> None:
    assert model_names(data) == names
