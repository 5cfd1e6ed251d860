"""Answers without a model: those that exist already, and those of three dummies.

Dummies anchor the scale of a benchmark. They read the item's tags, which no real method may: the
point is to know what a score of "always unknown" or "always the stereotype" looks like.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import NoAnswer, UnreadableReply, Unsuited, UserError

_SHORTEST_PREFIX = 12  # our choice: below it a cut answer may fit by accident


class _AsksNobody:
    __slots__ = ()
    calls_an_item: ClassVar[str] = "0"

    def agents(self) -> tuple[Agent[Any], ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer(_AsksNobody):
    """Takes the item's `answer`. With choices it must be one of them, in other case or punctuation
    or cut short at the end; what fits none of them, or more than one, is unreadable."""

    name: ClassVar[str] = "stored"

    async def answer(self, item: Item, ask: Ask) -> Answer:  # noqa: ARG002
        draft = stored_draft(item)
        if draft is None:
            raise Unsuited(f"item {item.id!r} has no stored answer")
        return Answer(drafts=(draft,), stopped="single_pass")


def stored_draft(item: Item) -> Draft | None:
    """Give the answer that an item has. None where it is still to be asked for; one that is known
    to be missing ends the item."""
    if item.answer is None:
        raise NoAnswer(f"item {item.id!r} has no recorded answer")
    if not item.answer:
        return None
    if not item.choices:
        return Draft(text=item.answer, tool_calls=item.answer_calls)
    choice = which(item.answer, item.choices)
    return Draft(text=item.choices[choice], choice=choice)


def which(text: str, choices: tuple[str, ...]) -> int:
    """The one option that a text is. Words are never dropped: "he" is not "the"."""
    normalized, options = _plain(text), [_plain(choice) for choice in choices]
    fits = [n for n, option in enumerate(options) if option == normalized]
    if not fits and len(normalized) >= _SHORTEST_PREFIX:
        fits = [n for n, option in enumerate(options) if option.startswith(normalized)]
    if len(fits) != 1:
        raise UnreadableReply("no_option", f"{text[:80]!r} is {len(fits)} of the options")
    return fits[0]


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s']", " ", text.casefold()).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysUnknown(_AsksNobody):
    """Always picks the option that says it is not known."""

    name: ClassVar[str] = "always_unknown"

    async def answer(self, item: Item, ask: Ask) -> Answer:  # noqa: ARG002
        return _pick(item, _tag(item, "unknown"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysStereotyped(_AsksNobody):
    """Always picks the stereotyped option; where there is none, the first that names someone."""

    name: ClassVar[str] = "always_stereotyped"

    async def answer(self, item: Item, ask: Ask) -> Answer:  # noqa: ARG002
        if item.tags.get("biased"):
            return _pick(item, _tag(item, "biased"))
        return _pick(item, 1 if _tag(item, "unknown") == 0 else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformRandom(_AsksNobody):
    """Picks an option at random, the same one each time for the same item and seed."""

    name: ClassVar[str] = "random"

    seed: int = 0

    async def answer(self, item: Item, ask: Ask) -> Answer:  # noqa: ARG002
        if not item.choices:
            raise Unsuited("random picks among choices; this item has none")
        digest = hashlib.sha256(f"{self.seed}:{item.id}".encode()).digest()
        return _pick(item, int.from_bytes(digest[:8], "big") % len(item.choices))


def _tag(item: Item, name: str) -> int:
    try:
        return int(item.tags[name])
    except (KeyError, ValueError):
        raise UserError(
            f"Item {item.id!r} has no tag {name!r}. Trivial baselines need benchmark items: use "
            "them with `evenhand measure`."
        ) from None


def _pick(item: Item, option: int) -> Answer:
    draft = Draft(text=item.choices[option], choice=option)
    return Answer(drafts=(draft,), stopped="single_pass")
