"""Topics: cleaned of what surrounds them, and each only once."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core import Failed, Usage
from evenhand.core.errors import UserError
from evenhand.models import ModelReply
from evenhand.models.base import Sample
from evenhand.training.debates.topics import (
    ALIKE,
    ANGLES,
    AREAS,
    BiasType,
    DebateTopics,
    Distinct,
    batch,
    bias_types,
    debate_items,
    joined,
    listed,
    normalised,
    split,
)
from tests.errors import Fact, raises_naming
from tests.stage import Stage

AGE = bias_types()["age"]


@pytest.mark.parametrize(
    "line",
    [
        "Gardening as a hobby",
        "1. Gardening as a hobby",
        "12) Gardening as a hobby.",
        "(3) Gardening as a hobby",
        "- Gardening as a hobby",
        "•  Gardening as a   hobby",
        "a) Gardening as a hobby",
        "**1. Gardening as a hobby**",
        "2. **Gardening as a hobby**",
        '3. "Gardening as a hobby"',
        "Topic 4: Gardening as a hobby",
        "5. - Topic: “Gardening as a hobby”",
        "### Gardening as a hobby",
    ],
)
def test_numbers_bullets_quotes_and_markup_are_taken_off(line: str) -> None:
    topic = "Gardening as a hobby"
    assert listed(line) == [topic]


def test_a_number_that_belongs_to_the_topic_stays() -> None:
    lines = "1. 60 hours of work a week\n2. 20 as the age to vote"
    hours = "60 hours of work a week"
    age = "20 as the age to vote"
    assert listed(lines) == [hours, age]


def test_talk_around_a_list_is_no_topic() -> None:
    said = (
        "Sure! Here are some topics\n\nAge:\n1. Late trains\n2. Early mornings\n\nI hope it helps."
    )
    assert listed(said) == ["Late trains", "Early mornings"]
    lines = "Topics for you:\nLate trains\n\nEarly mornings\n"
    assert listed(lines) == ["Late trains", "Early mornings"]


def test_a_paragraph_and_a_line_without_letters_are_no_topics() -> None:
    too_long = "\n2. 17\n3. ---\n4. Buses"
    assert listed("1. " + "word " * 31 + too_long) == ["Buses"]


_LINES = st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs")), max_size=60)


@given(_LINES)
def test_a_topic_that_was_cleaned_is_clean(line: str) -> None:
    for topic in listed(line):
        assert listed(f"7. {topic}") == [topic]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Gardening as a hobby", "gardening: a hobby!", True),
        ("Hobbies and gardening", "Gardening, hobby", True),
        ("Café visits", "cafe visit", True),
        ("The right to vote", "Voting rights", False),  # no grammar, only words
        ("Rent for old flats", "Rent for old houses", False),  # 2 of 4 words
        ("Late trains and long queues", "Late trains and long queues downtown", True),  # 4 of 5
        ("Working at 20", "Working at 60", False),
        ("On it", "By it", False),  # nothing but small words: all count
    ],
)
def test_topics_are_the_same_from_three_of_four_words_on(one: str, other: str, same: bool) -> None:
    found = Distinct()
    found.add([one, other])
    assert found.kept == ([one] if same else [one, other])
    assert found.duplicates == int(same)


_WORDS = st.sampled_from("tea bus rent vote club boss exam diet choir".split())
_TOPICS = st.lists(st.lists(_WORDS, min_size=1, max_size=6).map(" ".join), max_size=25)


def _alike(one: str, other: str) -> bool:
    first, second = normalised(one), normalised(other)
    return len(first & second) / len(first | second) >= ALIKE


@given(_TOPICS)
def test_no_two_that_are_kept_are_alike_and_what_is_dropped_is_like_one_before(
    topics: list[str],
) -> None:
    found = Distinct()
    found.add(topics)
    assert not any(_alike(one, other) for one, other in combinations(found.kept, 2))
    assert all(any(_alike(topic, kept) for kept in found.kept) for topic in topics)
    assert (found.seen, found.duplicates) == (len(topics), len(topics) - len(found.kept))
    before = list(found.kept)
    found.add(topics)
    assert found.kept == before


async def test_a_batch_is_asked_for_by_area_and_angle_and_each_topic_is_a_draft() -> None:
    stage = Stage({"topic_writer": ["1. Buses\n2. Trains"]})
    answer = await stage.answer(DebateTopics(), batch("age", AGE, 25))
    assert [draft.text for draft in answer.drafts] == ["Buses", "Trains"]
    (words,) = stage.asked_of("topic_writer")
    assert f"judged by {AGE.about}" in words
    assert f"Area of life: {AREAS[1]}." in words
    assert f"Angle: {ANGLES[1]}." in words


def test_no_two_batches_ask_in_the_same_words_until_all_are_used() -> None:
    batches = [batch("age", AGE, number) for number in range(len(AREAS) * len(ANGLES))]
    assert len({(item.tags["area"], item.tags["angle"]) for item in batches}) == len(batches)
    assert len({item.id for item in batches}) == len(batches)


async def test_the_last_line_of_a_reply_that_was_cut_off_is_no_topic() -> None:
    cut = ModelReply(
        samples=(Sample("1. Buses\n2. Trains\n3. The pri", finish="length"),), usage=Usage(1, 1)
    )
    answer = await Stage({"topic_writer": [cut]}).answer(DebateTopics(), batch("age", AGE, 0))
    assert [draft.text for draft in answer.drafts] == ["Buses", "Trains"]


async def test_a_reply_without_a_topic_fails_by_name() -> None:
    ended = await Stage({"topic_writer": ["Here they are:", "17"]}).end_of(
        DebateTopics(), batch("age", AGE, 0)
    )
    assert isinstance(ended, Failed)
    assert ended.reason == "unreadable_reply:no_topics"


def test_the_five_types_of_the_paper_have_three_roles_each() -> None:
    types = bias_types()
    assert sorted(types) == ["age", "beauty", "institution", "nationality", "profession"]
    assert {len(kind.roles) for kind in types.values()} == {3}
    for kind in types.values():
        assert split(joined(kind.roles)) == kind.roles


def test_a_topics_line_holds_all_that_a_debate_needs() -> None:
    kind = BiasType(about="what they eat", roles=["a vegan", "a hunter"])
    assert list(debate_items("diet", kind, ["school meals"])) == [
        {
            "id": "diet/00000",
            "prompt": "school meals",
            "tags": {"topic": "school meals", "bias_type": "diet", "roles": "a vegan|a hunter"},
        }
    ]


def test_a_file_of_the_users_adds_types_and_replaces_those_of_the_same_name(tmp_path: Path) -> None:
    file = tmp_path / "roles.toml"
    file.write_text(
        '[diet]\nabout = "what they eat"\nroles = ["a vegan", "a hunter"]\n'
        '[age]\nabout = "age"\nroles = ["a child", "a pensioner"]\n'
    )
    types = bias_types(file)
    assert types["diet"].roles == ["a vegan", "a hunter"]
    assert types["age"].roles == ["a child", "a pensioner"]
    assert len(types) == 6


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[diet]\nabout = "x"\nroles = ["one"]\n', ("diet.roles", 2)),
        ('[diet]\nroles = ["a", "b"]\n', ("diet.about: Field required",)),
        ('[diet]\nabout = "x"\nroles = ["a", "a"]\n', ("diet", "the same")),
        ('[diet]\nabout = "x"\nroles = ["a|b", "c"]\n', ("diet.roles.0",)),
        ('[diet]\nabout = "x"\nrole = ["a", "b"]\n', ("diet.roles: Field required",)),
        ("diet = [", ("TOML",)),
    ],
)
def test_a_wrong_roles_file_says_where_and_how_it_should_be(
    tmp_path: Path, text: str, problem: tuple[Fact, ...]
) -> None:
    file = tmp_path / "roles.toml"
    file.write_text(text)
    with raises_naming(UserError, "roles.toml", *problem):
        bias_types(file)
    with raises_naming(UserError, "none.toml"):
        bias_types(tmp_path / "none.toml")
