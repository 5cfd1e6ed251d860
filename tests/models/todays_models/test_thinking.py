"""What was thought is told apart from what was answered, however a server shows it."""

import random

import pytest

from evenhand.core import Usage
from evenhand.models import ModelReply, Sample, TokenLogprob
from evenhand.models.thinking import (
    Splitter,
    apart,
    joined,
    more_room,
    split,
    split_parts,
    used_it_up,
    with_own_tokens,
    without_blanks,
)

TEXTS = pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        pytest.param("I think so.", "", "I think so.", id="none"),
        pytest.param(" a word ", "", " a word ", id="none-as-it-is"),
        pytest.param("<think>a</think>\n\nb", "a", "b", id="closed"),
        pytest.param("<think>\n\n</think>\n\nb", "", "b", id="empty"),
        pytest.param("a</think>b", "a", "b", id="opened-in-the-prompt"),
        pytest.param("<think>a", "a", "", id="never-closed"),
        pytest.param("b<think>a", "a", "b", id="cut-behind-an-answer"),
        pytest.param("<think>a<think>b</think>c</think>d", "a<think>b</think>c", "d", id="nested"),
        pytest.param("<think>a <think> b</think>d", "a <think> b", "d", id="a-tag-mentioned"),
        pytest.param("<think>a</think>b<think>c</think>d", "a\n\nc", "bd", id="twice"),
        pytest.param("<think>a</think>b</think>c", "a\n\nb", "c", id="closed-twice"),
        pytest.param("[THINK]a[/THINK]b", "a", "b", id="mistral"),
        pytest.param("<thought>a</thought>b", "a", "b", id="thought"),
        pytest.param(
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
            "a", "b", id="gpt-oss",
        ),
        pytest.param('{"x": "<think>a</think>b"}', "a", '{"x": "b"}', id="within-json"),
        pytest.param('{"x": "<think>a"}', "", '{"x": "<think>a"}', id="json-stays-json"),
        pytest.param('<think>{"x"</think>{"x": 1}', '{"x"', '{"x": 1}', id="json-behind"),
        pytest.param('{"s":5} hm</think>{"s": 1}', '{"s":5} hm', '{"s": 1}', id="behind-an-object"),
        pytest.param('{"s":5}\n<think>a', "a", '{"s":5}', id="unclosed-behind-an-object"),
        pytest.param('{so "a</think>b', '{so "a', "b", id="a-brace-is-no-object"),
        pytest.param('{"s": "a</think>{"s": 1}', '{"s": "a', '{"s": 1}', id="no-object-after-all"),
        pytest.param(
            '<think>a</think>{"s":"use </think> here"}', "a", '{"s":"use </think> here"}',
            id="mentioned-in-json-behind-a-thought",
        ),
        pytest.param(
            '{"s": 1}\n{"s": "\\"</think>"}', "", '{"s": 1}\n{"s": "\\"</think>"}',
            id="mentioned-in-the-second-object",
        ),
        pytest.param(
            '{"s": "<think>", "t": "</think>"}', "", '{"s": "<think>", "t": "</think>"}',
            id="tags-in-two-strings",
        ),
        pytest.param('{"s": "<think>a', "a", '{"s": "', id="never-closed-in-a-string"),
        pytest.param("a <b> [c] <thin", "", "a <b> [c] <thin", id="a-tag-cut-off"),
    ],
)  # fmt: skip


@TEXTS
def test_a_text_is_split(text: str, thought: str, answer: str) -> None:
    assert split(text) == (thought, answer)


@TEXTS
def test_a_text_in_pieces_is_split_as_the_whole_one(text: str, thought: str, answer: str) -> None:
    rng = random.Random(text)
    for size in (1, 2, 3, *(rng.randrange(1, 12) for _ in range(5))):
        splitter, taken = Splitter(), ""
        for at in range(0, len(text), size):
            splitter.add(text[at : at + size])
            taken += splitter.take()
        splitter.end()
        taken += splitter.take()
        assert (joined(splitter.thinking), splitter.answer) == (thought, answer)
        assert splitter.late or taken.rstrip() == answer.rstrip()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("<think>A <think> ends at </think>, so they", "", id="in-a-thought"),
        pytest.param("<think>A <think> is a tag.</think></think>They", "They", id="in-an-answer"),
        pytest.param('{"s": "a </think>, b', '{"s": "a </think>, b', id="in-a-string"),
    ],
)
def test_a_cut_thought_that_mentions_a_tag_is_no_answer(text: str, answer: str) -> None:
    assert split(text, cut=True)[1] == answer
    assert apart(Sample(text, "length")).text == answer
    assert apart(Sample(text, "content_filter")).text == answer
    assert apart(Sample(text, "tool_calls")).text == answer


@pytest.mark.parametrize(
    ("texts", "answers"),
    [
        pytest.param(["<think>a", "b", "</think>c"], ["", "", "c"], id="a-part-in-a-block"),
        pytest.param(["a", "b</think>", " c ", "d "], ["", "", "c ", "d"], id="late"),
        pytest.param(["a <thi", "", "nk>b</think>c"], ["a ", "", "c"], id="a-tag-in-two-parts"),
        pytest.param([" a <thi", "s> "], [" a <thi", "s> "], id="no-thought"),
        pytest.param(["a<think>b", "c"], ["a", ""], id="never-closed"),
        pytest.param(['{"a": "</thi', 'nk>"}'], ['{"a": "</thi', 'nk>"}'], id="json"),
    ],
)
def test_each_part_keeps_its_words_of_the_answer(texts: list[str], answers: list[str]) -> None:
    assert split_parts(texts)[1] == answers


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("<think>a", True),
        ("<think>a <think> b</think>c", True),
        ('{"a": "<think>b', True),
        ('{"a": "<think>b"}', False),
        ("<think>a</think>b", False),
        ("a</think>b", False),
    ],
)
def test_whether_a_text_ended_within_a_block_is_told(text: str, is_open: bool) -> None:
    splitter = Splitter()
    splitter.add(text)
    splitter.end()
    assert splitter.is_open is is_open


def test_what_was_taken_and_turns_out_to_be_thinking_is_told() -> None:
    splitter = Splitter()
    splitter.add("One. Two.")
    assert (splitter.take(), splitter.late) == ("One. Two.", False)
    splitter.add("</think>Three.")
    assert (splitter.take(), splitter.late) == ("Three.", True)


def test_the_first_token_of_the_answer_is_not_that_of_the_thought() -> None:
    tokens = tuple(TokenLogprob(word, -0.1) for word in ("<think>", "no", "</think>", "\n", "yes"))
    sample = apart(Sample("<think>no</think>\nyes", "stop", tokens))
    assert (sample.text, sample.thinking) == ("yes", "no")
    assert sample.logprobs == tokens[-1:]


def test_blanks_that_a_library_leaves_behind_a_thought_are_no_part_of_the_answer() -> None:
    sample = without_blanks(Sample("\n\nyes", "stop", None, "no"))
    assert (sample.text, sample.thinking) == ("yes", "no")
    assert without_blanks(Sample("yes", "stop", None, "no")).text == "yes"


def listed(*words: str) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(word, -0.1) for word in words)


@pytest.mark.parametrize(
    ("tokens", "own"),
    [
        pytest.param(("yes",), ("yes",), id="its own alone"),
        pytest.param(("no", "</think>", "\n\n", "yes"), ("yes",), id="behind a thought"),
        pytest.param(("no", "</think>", "\n", " yes"), (" yes",), id="with a blank"),
        pytest.param(("no", "</think>", "y", "es", "<|im_end|>"), ("y", "es"), id="and an end"),
        pytest.param(("no", "</think>"), None, id="those of the thought alone"),
        pytest.param(("no", "</think>yes"), None, id="one token for both"),
    ],
)
def test_behind_a_thought_the_tokens_are_those_that_spell_the_answer(
    tokens: tuple[str, ...], own: tuple[str, ...] | None
) -> None:
    sample = with_own_tokens(Sample("yes", "stop", listed(*tokens), "no"))
    assert sample.logprobs == (None if own is None else listed(*own))


def test_the_end_of_a_reply_without_words_keeps_its_alternatives() -> None:
    sample = Sample("", "stop", listed("<|im_end|>"))
    assert with_own_tokens(sample) is sample


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("<think>no</think>yes", ("no", "!", "?")),
        ("yes<think>yes", ("yes", "<think>", "yes")),
        ("yes<think>no", ("yes", "<think>", "no")),
    ],
)
def test_tokens_that_do_not_end_with_the_answer_are_left_out(
    text: str, tokens: tuple[str, ...]
) -> None:
    sample = apart(Sample(text, "stop", listed(*tokens)))
    assert (sample.text, sample.logprobs) == ("yes", None)


@pytest.mark.parametrize(
    ("sample", "thought_tokens", "expected"),
    [
        pytest.param(Sample("", "length", None, "a"), None, True, id="shown"),
        pytest.param(Sample("", "length"), None, True, id="nothing-at-all"),
        pytest.param(Sample("half", "length"), 90, True, id="counted"),
        pytest.param(Sample("half", "length"), None, False, id="a-long-answer"),
        pytest.param(Sample("whole", "stop", None, "a"), 90, False, id="ended"),
        pytest.param(Sample("", "length", ()), None, False, id="one-token"),
    ],
)
def test_whether_thinking_used_up_the_limit(
    sample: Sample, thought_tokens: int | None, expected: bool
) -> None:
    reply = ModelReply(samples=(sample,), usage=Usage(9, 90, thought_tokens))
    assert used_it_up(reply) is expected


def test_the_second_limit_is_four_times_the_first_and_4096_at_least() -> None:
    assert (more_room(20), more_room(2000)) == (4096, 8000)
