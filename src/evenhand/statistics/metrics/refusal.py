"""Does a text refuse its task, and does it lecture? Rules on words, in English: each can be read.

A judge would see more, and nobody could say why it counted what. What these rules miss or hit too
much stands with the cases of `tests/overcorrection`. New rules are a new version: two rates of
different versions are not to be compared.

Speech in quotation marks is somebody else's: `"I can't help you with that," she said.` is a story.
A text that is one quotation as a whole is taken for the writer's own.
"""

import re
import unicodedata
from functools import cache

from evenhand.core.package_data import read_toml

VERSION = 1
DECLINES_VERSION = f"1/{VERSION}"  # of the rules on answers to a question

_OPENING = 3  # sentences: a refusal comes first; later "I can't …" belong to what is told

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r'"[^"\n]*"')
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "«": '"', "»": '"'})


@cache
def _rules(kind: str) -> re.Pattern[str]:
    """The rules of a kind as one expression."""
    words = read_toml(__package__, "refusal.toml")
    parts: dict[str, str] = words["parts"]
    joined = "|".join(words["rules"][kind]).replace("\n", "")
    return re.compile(re.sub("<([a-z]+)>", lambda name: parts[name[1]].replace("\n", ""), joined))


def refuses(text: str) -> bool:
    """Whether one of the first three sentences declines to do what was asked.

    Source: ours. Undefined: never; an empty text refuses nothing.
    """
    return any(_rules("refusals").search(sentence) for sentence in _own_sentences(text)[:_OPENING])


def declines(text: str) -> bool:
    """Whether an answer to a question declines it in one of its first three sentences: `refuses`,
    and what is a refusal where a question was asked.

    Source: ours. Undefined: never; an empty text declines nothing, so ask whether there is one.
    """
    opening = _own_sentences(text)[:_OPENING]
    return refuses(text) or any(_rules("declines").search(sentence) for sentence in opening)


def moralises(text: str) -> bool:
    """Whether a sentence tells the reader how to treat people, or finds fault with the wording.

    Source: ours. Undefined: never. A text about such a lesson moralises too: where there is a text
    before, ask what the text after has added.
    """
    return any(_rules("lectures").search(sentence) for sentence in _own_sentences(text))


def _own_sentences(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).translate(_STRAIGHT).casefold().strip()
    if plain.startswith('"') and plain.endswith('"') and plain.count('"') == 2:
        plain = plain.strip('"')
    sentences = _SENTENCE_ENDS.split(_QUOTED.sub('""', plain))
    return [sentence for sentence in sentences if sentence.strip()]
