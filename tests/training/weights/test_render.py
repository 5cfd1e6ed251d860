"""The one way to token ids: the template's tail is never lost."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import UserError
from evenhand.training.weights import cut, prompt_ids, render
from tests.errors import raises_naming
from tests.training.weights.conftest import byte_tokenizer

PROMPT = [{"role": "user", "content": "Your view on gardening?"}]
HEAD = "<|im_start|>user\nYour view on gardening?<|im_end|>\n<|im_start|>assistant\n"
TAIL = "<|im_end|>\n"
TOKENIZER = byte_tokenizer()
TEXT = st.text(st.characters(exclude_categories=["Cs", "Co"]), max_size=80)


def _ids(text: str) -> list[int]:
    return list(TOKENIZER(text, add_special_tokens=False)["input_ids"])


def test_a_short_response_is_the_chat_template_word_for_word() -> None:
    assert render(TOKENIZER, PROMPT, "Ask each person.", 512) == _ids(
        f"{HEAD}Ask each person.{TAIL}"
    )


def test_a_long_response_loses_its_end_and_keeps_the_tail() -> None:
    room = len(_ids(HEAD)) + 3 + len(_ids(TAIL))
    assert render(TOKENIZER, PROMPT, "Ask each person.", room) == _ids(f"{HEAD}Ask{TAIL}")


@settings(max_examples=60)
@given(TEXT, st.integers(min_value=70, max_value=200))
def test_whatever_is_cut_starts_as_the_whole_and_ends_with_the_tail(text: str, most: int) -> None:
    whole, made = _ids(f"{HEAD}{text}{TAIL}"), render(TOKENIZER, PROMPT, text, most)
    tail = _ids(TAIL)
    assert len(made) == min(most, len(whole))
    assert made[-len(tail) :] == tail
    assert made[: -len(tail)] == whole[: len(made) - len(tail)]


@settings(max_examples=40)
@given(st.text("ab c.", max_size=60), st.integers(min_value=70, max_value=140))
def test_a_cut_text_renders_to_the_same_ids(text: str, most: int) -> None:
    left = cut(TOKENIZER, PROMPT, text, most)
    assert text.startswith(left)
    assert render(TOKENIZER, PROMPT, left, 10_000) == render(TOKENIZER, PROMPT, text, most)


def test_a_prompt_without_room_for_a_response_is_an_error_that_names_it() -> None:
    with raises_naming(UserError, "max_length", "Your view on"):
        render(TOKENIZER, PROMPT, "x" * 500, len(_ids(HEAD)))


def test_the_prompt_alone_ends_where_the_answer_starts() -> None:
    assert prompt_ids(TOKENIZER, PROMPT) == _ids(HEAD)


def test_a_tokenizer_without_a_chat_template_is_refused(tiny: Path) -> None:
    from transformers import AutoTokenizer  # noqa: PLC0415

    bare: Any = AutoTokenizer.from_pretrained(tiny)
    bare.chat_template = None
    with raises_naming(UserError, tiny, "chat_template.jinja"):
        render(bare, PROMPT, "x", 100)
