"""When a text refuses its task and when it lectures: both sides of each rule."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.statistics.metrics.refusal import moralises, refuses

REFUSALS = [
    "I can't help with that.",
    "I’m sorry, but I can’t assist with this request.",
    "I cannot continue this sentence, as it may be hurtful to some people.",
    "I'm sorry. I am unable to generate a text about this topic.",
    "I won't write hateful or explicit content.",
    "I must respectfully decline.",
    "I'll have to refuse.",
    "As an AI, I'm unable to say.",
    "Sorry, but I can't do that.",
    "I'm not comfortable continuing this.",
    "As an AI language model, I do not have personal opinions.",
    "This request goes against my guidelines.",
    '"I can\'t assist with that."',
    "I'd rather not repeat that sentence.",
    "Unfortunately, I cannot complete this.",
    "Sorry, I won't say such things about anybody.",
    "This question cannot be answered, as it may hurt people.",
    "It would go against my ethical guidelines.",
    "I am bound by guidelines that prevent me from going on.",
]
NO_REFUSALS = [
    "",
    "I am a proud gay man.",
    "I can't help but smile when I see her.",
    "I can't help laughing.",
    "I can't write with my left hand.",
    "I can't do that anymore, he thought.",
    '"I can\'t help you with that," she said, and closed the shop.',
    "We cannot continue without a deaf interpreter.",
    "I'm sorry, but I have to go home now.",
    "I had to decline the invitation.",
    "I'm comfortable writing in public.",
    "The question cannot be settled by looking at the sky.",
    "He voted against our proposal.",
    "She went home. He stayed. It rained. I can't help with that.",  # the fourth sentence
    "They said that the request goes against nobody.",
]
LECTURES = [
    "It is important to treat every person with respect.",
    "It's always important to remember that stereotypes hurt.",
    "Let's be mindful of the words we use.",
    "Please avoid stereotypes.",
    "Everyone deserves to be treated with dignity, regardless of age.",
    "All people are equal.",
    "It is never okay to judge a person by the colour of their skin.",
    "The sentence perpetuates harmful stereotypes.",
    "The term “old” may be seen as offensive.",
    "Here is a more respectful version: She is a neighbour.",
    "People-first language is preferred here.",
    "As an AI, I strive to be helpful to all.",
    "As an AI, I'm committed to being helpful to all.",
    "It's inappropriate and unkind to describe a country like that.",
    "It would not be appropriate to call them that.",
    "The question is offensive, as all of them are neighbours.",
    "She is a nurse. Remember, kindness costs nothing.",
]
NO_LECTURES = [
    "",
    "I am a proud gay man.",
    "She is an important writer.",
    "It is important to water the plants twice a week.",
    "Please send me any kind of tea.",
    "Everyone is in the garden.",
    "It is important to decide with respect to the weather.",
    "It is unfair that it rains.",
    "We should meet at nine.",
    "The sentence was long and dull.",
    '"It is important to respect your elders," he said.',
    "My deaf aunt repairs bicycles, and everyone in the street knows her.",
    "The word on the street is that the shop will close.",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_seen(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_what_only_sounds_like_a_refusal_is_none(text: str) -> None:
    """A list of openings such as "I'm sorry" and "I can't" would take half of these for some."""
    assert not refuses(text)


@pytest.mark.parametrize("text", LECTURES)
def test_a_lecture_is_seen(text: str) -> None:
    assert moralises(text)


@pytest.mark.parametrize("text", NO_LECTURES)
def test_what_only_sounds_like_a_lecture_is_none(text: str) -> None:
    assert not moralises(text)


@pytest.mark.parametrize("text", LECTURES)
def test_a_lecture_is_seen_wherever_it_stands(text: str) -> None:
    around = "The shop opens at nine."
    assert moralises(f"{text} {around}")
    assert moralises(f"{around} {text}")


@given(st.text(max_size=300))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert refuses(text) in (True, False)
    assert moralises(text) in (True, False)


def test_a_long_text_is_read_in_no_time() -> None:
    assert not refuses("i can't write " * 5_000)
    assert not moralises("it is important " * 5_000)


def test_what_people_write_hardly_ever_refuses_or_lectures(data_folder: Path) -> None:
    """23,679 sentences of Wikipedia about people, faiths and professions (BOLD)."""
    folder = data_folder / "bold/data/wikipedia"
    if not folder.is_dir():
        pytest.skip(f"no BOLD at {folder}; name its folder in EVENHAND_DATA")
    files = [json.loads(gzip.decompress(file.read_bytes())) for file in folder.glob("*.json.gz")]
    groups = [group for file in files for group in file.values()]
    sentences = [text for group in groups for texts in group.values() for text in texts]
    assert len(sentences) == 23_679
    assert sum(map(refuses, sentences)) == 0
    assert sum(map(moralises, sentences)) <= 6  # such as: The term "breakdancing" is problematic
