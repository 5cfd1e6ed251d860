"""The judge of a choice that is no language model: the rule of StarDTox on structured tasks (paper
III-B), and the same for other methods. An option that says "not known" is judged by the others: the
less the likeliest of them is supported, the more it is."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import Field

from evenhand.agents import Agent, Ask, Reply
from evenhand.domain import Draft, Item
from evenhand.errors import UnreadableReply
from evenhand.methods.unknown import unknown_option
from evenhand.prompts import load

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
    named = [option for place, option in enumerate(item.choices) if place != unknown]
    claim = {"context": item.context, "question": item.prompt, "options": named}
    found = (await ask(RULE, claim=orjson.dumps(claim).decode())).support
    if len(found) != len(named):
        said = f"{len(found)} numbers for {len(named)} options"
        raise UnreadableReply("wrong_count", f"the judge of support gave {said}")
    if unknown is not None:
        found = [*found[:unknown], round(1 - max(found, default=0.0), 4), *found[unknown:]]
    return found


async def support_by_rule(item: Item, draft: Draft, ask: Ask) -> tuple[float, str]:
    """As the language model's judge gives it: how well, and what is missing."""
    found = await supports(item, ask)
    place = item.choices.index(draft.text) if draft.choice is None else draft.choice
    return found[place], "the context does not seem to state it"
