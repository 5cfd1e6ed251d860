"""One prompt, one answer: the shape that the prompt baselines share."""

from functools import cache
from typing import Any

from evenhand.agents import (
    Agent,
    Ask,
    Choice,
    Chosen,
    FreeText,
    NextToken,
    ReasonedChoice,
    choice_of,
)
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UnreadableReply
from evenhand.prompts import Prompt


@cache
def text_agent(prompt: Prompt) -> Agent[FreeText]:
    """The model under test, asked for a text."""
    return Agent("generator", prompt, FreeText)


@cache
def choice_agent(
    prompt: Prompt, options: int, kind: type[Chosen] = Choice, temperature: float | None = None
) -> Agent[Chosen]:
    """The model under test, asked for the letter of one of so many options."""
    return Agent("generator", prompt, choice_of(options, kind), temperature=temperature)


def reasoning_agent(
    prompt: Prompt, options: int, temperature: float | None = None
) -> Agent[Chosen]:
    return choice_agent(prompt, options, ReasonedChoice, temperature)


def question(item: Item) -> dict[str, Any]:
    """The variables that every prompt of a multiple-choice question has."""
    return {"context": item.context, "question": item.prompt, "choices": item.choices}


def no_letter(reply: NextToken, letters: str) -> UnreadableReply:
    """The error of a first token that is no option's letter, likely or not."""
    first = list(reply.probabilities)[:5]
    return UnreadableReply(
        "no_letter", f"none of {', '.join(letters)} is among the first tokens {first} …"
    )


async def ask_for_choice(item: Item, ask: Ask, agent: Agent[Chosen]) -> Answer:
    chosen = await ask(agent, **question(item))
    draft = Draft(text=item.choices[chosen.index], choice=chosen.index)
    return Answer(drafts=(draft,), stopped="single_pass")


async def draft_by(item: Item, ask: Ask, text: Prompt, choice: Prompt, **more: Any) -> Draft:
    """The model's answer to a prompt; `more` is what the prompt has beside the item."""
    if not item.choices:
        return Draft(text=(await ask(text_agent(text), prompt=item.prompt, **more)).text)
    chosen = await ask(choice_agent(choice, len(item.choices)), **question(item), **more)
    return Draft(text=item.choices[chosen.index], choice=chosen.index)


async def answer_once(item: Item, ask: Ask, text: Prompt, choice: Prompt) -> Answer:
    """The model's one and only answer to the item."""
    draft = await draft_by(item, ask, text, choice)
    return Answer(drafts=(draft,), stopped="single_pass")
