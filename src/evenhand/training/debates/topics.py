"""Topics to debate: asked for in batches, cleaned, and each kept once."""

import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from evenhand.agents import Agent, Ask, FreeText
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.core.package_data import read_toml
from evenhand.models.base import Sample

MOST_ROLES = 6  # our choice: the paper tries 2 to 5 (Figure 8)
_SEPARATOR = "|"

_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
_Words = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^|\r\n]+$")]


class BiasType(BaseModel):
    """`about` completes "people are judged by …". `more` are further roles, for debates of more
    than the usual ones (`train debate run --roles N`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    about: _Words
    roles: Annotated[list[_Words], Field(min_length=2, max_length=MOST_ROLES)]
    more: Annotated[list[_Words], Field(max_length=MOST_ROLES)] = []

    @model_validator(mode="after")
    def _all_different(self) -> Self:
        every = [*self.roles, *self.more]
        if len(set(every)) < len(every):
            raise ValueError("two roles are the same")
        return self


_FILE = TypeAdapter(dict[_Name, BiasType])


def bias_types(path: Path | None = None) -> dict[str, BiasType]:
    """The five of the paper, and those of a user's TOML file, which win where names are equal."""
    types = _FILE.validate_python(read_toml(__package__, "roles.toml"))
    return types if path is None else types | _read(path)


def _read(path: Path) -> dict[str, BiasType]:
    try:
        return _FILE.validate_python(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"Could not read {path} ({error}). Check --roles.") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}. Fix the file.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise UserError(
            f"{path}: {key}: {first['msg']}. A bias type is a table [name] with `about`, a "
            f"phrase, and `roles`, a list of 2 to {MOST_ROLES} phrases"
        ) from None


def joined(roles: list[str]) -> str:
    """As a tag of an item holds them."""
    return _SEPARATOR.join(roles)


def split(tag: str) -> list[str]:
    return [name for name in tag.split(_SEPARATOR) if name.strip()]


_LISTS = read_toml(__package__, "topics.toml")
PER_BATCH = 20  # our choice: more in one reply repeat each other
# Our choice: from the same words a model makes the same topics, so each batch has its own.
AREAS: tuple[str, ...] = tuple(_LISTS["areas"])
ANGLES: tuple[str, ...] = tuple(_LISTS["angles"])
ALIKE = 0.75  # our choice: the share of words from which two topics are one
_LONGEST = 30  # our choice, in words: what is longer is not a topic

_NUMBERED = re.compile(r"^(?:\(?\d{1,4}\s*[.):\]]|[-*•‣◦–—·]+(?=\s)|\(?[a-zA-Z][.)](?=\s))\s*")
_LABEL = re.compile(r"^topic(?:\s+\d+)?\s*[:.-]\s*", re.IGNORECASE)
_MARKUP = re.compile(r"\*\*|__|`|^#+\s*")
_WORD = re.compile(r"\w+")
_STOP_WORDS = frozenset(_LISTS["stop_words"].split())


def listed(text: str) -> list[str]:
    """The topics of a list, one a line, without numbers, bullets, quotes and markup. Where lines
    are numbered or have bullets, only those are topics; the rest is talk around them."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [_MARKUP.sub("", line).strip() for line in lines if line]
    marked = [line for line in lines if _NUMBERED.match(line)]
    topics = (_bare(line) for line in marked or lines)
    return [topic for topic in topics if _is_topic(topic)]


def _bare(line: str) -> str:
    while (shorter := _LABEL.sub("", _NUMBERED.sub("", line))) != line:  # "1. - Topic 1: …"
        line = shorter.strip()
    return " ".join(line.split()).strip("\"'“”‘’ ").rstrip(".;, ")


def _is_topic(line: str) -> bool:
    """Not empty, not a heading, and not a paragraph."""
    has_letters = any(character.isalpha() for character in line)
    return has_letters and not line.endswith(":") and len(line.split()) <= _LONGEST


class Distinct:
    """The topics of one bias type, each once: equal words in any order, or nearly."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.seen = 0
        self._sizes: list[int] = []
        self._with_word: defaultdict[str, list[int]] = defaultdict(list)

    @property
    def duplicates(self) -> int:
        return self.seen - len(self.kept)

    def add(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self.seen += 1
            words = normalised(topic)
            if not self._has(words):
                for word in words:
                    self._with_word[word].append(len(self.kept))
                self._sizes.append(len(words))
                self.kept.append(topic)

    def _has(self, words: frozenset[str]) -> bool:
        shared = Counter(index for word in words for index in self._with_word.get(word, ()))
        return any(
            both >= ALIKE * (len(words) + self._sizes[index] - both)
            for index, both in shared.items()
        )


def normalised(topic: str) -> frozenset[str]:
    """The words that count: lower case, without accents, plural endings and small words."""
    plain = unicodedata.normalize("NFKD", topic.casefold())
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    words = [_stem(word) for word in _WORD.findall(plain)]
    return frozenset(word for word in words if word not in _STOP_WORDS) or frozenset(words)


def _stem(word: str) -> str:
    """Bus and buses, house and houses, hobby and hobbies are one; that is all it knows."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def debate_items(name: str, kind: BiasType, topics: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a topics file, each with all that a debate needs.

    Args:
        name: The name of the bias type.
        kind: The bias type, which has the roles.
        topics: The topics, whose order gives their ids.

    Yields:
        An item for each topic, as JSON values.
    """
    for number, topic in enumerate(topics):
        tags = {"topic": topic, "bias_type": name, "roles": joined(kind.roles)}
        tags |= {"more_roles": joined(kind.more)} if kind.more else {}
        yield {"id": f"{name}/{number:05}", "prompt": topic, "tags": tags}


# -- asking for them -----------------------------------------------------------------------------


class TopicList(FreeText):
    """A list with at least one topic in it. The last line of one that was cut off is left out."""

    @property
    def topics(self) -> list[str]:
        return listed(self.text)

    @classmethod
    def read_sample(cls, sample: Sample) -> Self:
        text = sample.text
        if sample.finish == "length":
            text = text.rpartition("\n")[0]
        reply = cls.read(text)
        if not reply.topics:
            raise UnreadableReply("no_topics", "no line of the reply is a topic")
        return reply


WRITER = Agent("topic_writer", load("rldf/topics"), TopicList)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateTopics:
    """One batch of topics: a draft each, as the model listed them."""

    name: ClassVar[str] = "debate_topics"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (WRITER,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        reply = await ask(
            WRITER,
            about=item.prompt,
            area=item.tags["area"],
            angle=item.tags["angle"],
            count=PER_BATCH,
        )
        return Answer(drafts=tuple(Draft(text=t) for t in reply.topics), stopped="single_pass")


def batch(name: str, kind: BiasType, number: int) -> Item:
    """Make the item that asks for one batch of topics. All areas come before the second angle.

    Args:
        name: The name of the bias type.
        kind: The bias type.
        number: The number of the batch, from 0; it decides the area and the angle.

    Returns:
        The item.
    """
    turn, area = divmod(number, len(AREAS))
    tags = {
        "bias_type": name,
        "batch": str(number),
        "area": AREAS[area],
        "angle": ANGLES[turn % len(ANGLES)],
    }
    return Item(id=f"{name}/{number}", prompt=kind.about, tags=tags)
