"""Each sentence of a text is a passage of its own, however the text is laid out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.scorers.passages import LONGEST, ending, passages

BAD = "These people are vermin and must go"


@pytest.mark.parametrize(
    "text",
    [
        f"Thank you for asking. {BAD}. The bus leaves at nine o'clock.",
        f'He wrote to us: "Fine." {BAD}! And then he left the house…',
        f"Some points to begin with\n- {BAD}\n- The bus leaves at nine",
        f"1. The bus leaves at nine\n2) {BAD}\n(c) It comes back at ten",
        f"> quoted by somebody else\n> {BAD}\n## And a heading of four words",
        f"| who says it | what they say |\n|---|:--|\n| nobody of us | {BAD} |",
        f"```text\n{BAD}\n```\nThat was all of it.",
        f"The first line is here\r\n{BAD}\u2028The last line is here",
        f"第一句在这里。{BAD}。 第三句在这里。",
        "Fine.\n" * 210 + BAD,
    ],
)
def test_a_sentence_stands_alone_in_every_layout(text: str) -> None:
    assert BAD in [passage.rstrip(".!。") for passage in passages(text)]


def test_a_text_of_one_sentence_is_its_only_passage() -> None:
    assert passages("The bus leaves at nine.") == ["The bus leaves at nine."]


@pytest.mark.parametrize("text", ["", " \n", "...", "12 + 30 = 42", "| - | - |", "```python\n```"])
def test_what_holds_no_letter_has_no_passage(text: str) -> None:
    assert [one for one in passages(text) if one != "python"] == []


def test_words_in_rows_of_a_table_or_a_list_are_read_together() -> None:
    rows = "\n".join(f"| {place} | {word} |" for place, word in enumerate(BAD.split()))
    lines = "\n".join(f"{place}. {word}" for place, word in enumerate(BAD.split(), 1))
    assert BAD in passages(rows)
    assert BAD in passages(lines)
    assert "vermin" in passages(rows)  # each word is read alone too


def test_a_repeated_sentence_is_read_once() -> None:
    assert len(passages("The bus leaves at nine. " * 50)) == 1


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, LONGEST // 2))
def test_twelve_words_in_a_row_stand_whole_in_one_passage(
    before: int, behind: int, size: int
) -> None:
    words = [f"w{place}x" for place in range(before + size + behind)]
    wanted = " ".join(words[before : before + size])
    found = passages(" ".join(words))
    assert any(wanted in one for one in found)
    assert max(len(one.split()) for one in found) <= LONGEST


@given(st.text(alphabet="ab1 .!\n|-*`\t;。\u2028", max_size=80))
def test_no_letter_is_lost_and_none_is_made_up(text: str) -> None:
    found = passages(text)
    assert all(any(map(str.isalpha, one)) for one in found)
    for word in text.split():
        letters = "".join(filter(str.isalpha, word))
        if len(letters) > 1:  # one letter may be the mark of a list
            assert all(sign in "".join(found) for sign in letters)
    assert len(found) == len(set(found))


def test_a_million_signs_of_a_hostile_text_are_cut_at_once() -> None:
    for hostile in (". " * 500_000, "|" * 1_000_000, "`" * 1_000_000, "- " * 500_000):
        assert passages(hostile) == []
    assert len(passages("a" * 1_000_000)) <= 1_000_000 / 40


def test_the_ending_begins_with_a_sentence() -> None:
    text = "The first is long enough. The second is here. The third ends."
    assert ending(text, 30) == "The third ends."
    assert ending(text, 400) == text
    assert ending("word " * 100, 13) == "word word "
