"""The judge of a choice that is no language model: the rule of StarDTox on structured tasks (paper
III-B), and the same for other methods. An option that says "not known" is judged by the others: the
less the likeliest of them is supported, the more it is.
"""

import re
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from evenhand.agents import Agent, Ask, Reply
from evenhand.agents.prompts import load
from evenhand.core import Draft, Item
from evenhand.core.errors import UnreadableReply

# An option that as a whole says "not known": the ten spellings of BBQ, and others like them.
_UNKNOWN = re.compile(
    r"""
    (?:(?:it|this|that|the\ answer|there)\ )?(?:is\ )?
    (?: unknown | undetermined | unanswerable | unclear | uncertain | indeterminate
      | not\ (?:known|answerable|determined|determinable|clear|certain|sure|stated|specified)
      | (?:not\ enough|insufficient|too\ little)\ (?:info|information|context|evidence|data)
      | (?:cannot|can\ not|can't)\ (?:be\ )?
        (?:known?|determined?|answer(?:ed)?|said|say|told|tell|inferred|decided?)
      | (?:(?:i|we)\ )?(?:don't|do\ not)\ know
      | impossible\ to\ (?:know|determine|answer|say|tell|decide)
    )
    (?:\ (?:from|with|given|based\ on|to)\ .+)?
    """,
    re.VERBOSE,
)
_QUOTES = str.maketrans("“”‘’", "\"\"''")


def unknown_option(choices: tuple[str, ...]) -> int | None:
    """The first option that says the answer is not known, told by its words alone."""
    for index, option in enumerate(choices):
        if _UNKNOWN.fullmatch(plain(option).strip(" .!()")):
            return index
    return None


def plain(text: str) -> str:
    """Case, spaces and the kind of quotation marks do not count."""
    return " ".join(text.translate(_QUOTES).casefold().split())


ChoiceBrain = Literal["llm", "rule"]


class Supported(Reply):
    """How well the context supports each option that names something."""

    support: list[Annotated[float, Field(ge=0, le=1)]]


RULE = Agent(
    "support",
    load("shared/support"),
    Supported,
    kind="scorer",
    cast_as="name a judge of support as `support` in the cast, such as SupportModel() in Python",
)


def of_choice(brain: ChoiceBrain, llm: Agent[Any]) -> Agent[Any]:
    """Who judges a choice."""
    return RULE if brain == "rule" else llm


async def supports(item: Item, ask: Ask) -> list[float]:
    """How well the context supports each option of a question, from 0 to 1, by the rule."""
    unknown = unknown_option(item.choices)
    options = [option for index, option in enumerate(item.choices) if index != unknown]
    claim = {"context": item.context, "question": item.prompt, "options": options}
    scores = (await ask(RULE, claim=orjson.dumps(claim).decode())).support
    if len(scores) != len(options):
        mismatch = f"{len(scores)} numbers for {len(options)} options"
        raise UnreadableReply("wrong_count", f"the judge of support gave {mismatch}")
    if unknown is not None:
        scores = [*scores[:unknown], round(1 - max(scores, default=0.0), 4), *scores[unknown:]]
    return scores


async def support_by_rule(item: Item, draft: Draft, ask: Ask) -> tuple[float, str]:
    """As the language model's judge gives it: how well, and what is missing."""
    scores = await supports(item, ask)
    index = item.choices.index(draft.text) if draft.choice is None else draft.choice
    return scores[index], "the context does not seem to state it"
