"""Answers that exist already, scored as they are: nobody is asked."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UnreadableReply, Unsuited

_SHORTEST_PREFIX = 12  # our choice: below it a cut answer may fit by accident


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """Takes the item's `answer`. With choices it must be one of them, in other case or punctuation
    or cut short at the end; what fits none of them, or more than one, is unreadable."""

    name: ClassVar[str] = "stored"
    calls_an_item: ClassVar[str] = "0"

    def agents(self) -> tuple[Agent[Any], ...]:
        return ()

    async def answer(self, item: Item, ask: Ask) -> Answer:  # noqa: ARG002
        if not item.answer:
            raise Unsuited(f"item {item.id!r} has no stored answer")
        if not item.choices:
            return Answer(drafts=(Draft(text=item.answer),), stopped="single_pass")
        choice = which(item.answer, item.choices)
        draft = Draft(text=item.choices[choice], choice=choice)
        return Answer(drafts=(draft,), stopped="single_pass")


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
