"""Drafts, asked for one at a time: the shape that the baselines of several steps share."""

from typing import Any

from evenhand.agents import Ask
from evenhand.domain import Draft, Item
from evenhand.methods.baselines.single_prompt import choice_agent, question, text_agent
from evenhand.prompts import Prompt, load

PLAIN_TEXT = load("baselines/default_text")
PLAIN_CHOICE = load("baselines/default_choice")


async def first_draft(item: Item, ask: Ask) -> Draft:
    """The answer that is there already, or else the model's own to the plain task."""
    return stored_draft(item) or await draft_by(item, ask, PLAIN_TEXT, PLAIN_CHOICE)


def stored_draft(item: Item) -> Draft | None:
    if not item.answer:
        return None
    return Draft(text=item.answer, choice=item.choices.index(item.answer) if item.choices else None)


async def draft_by(item: Item, ask: Ask, text: Prompt, choice: Prompt, **more: Any) -> Draft:
    """The model's answer to a prompt; `more` is what the prompt has beside the item."""
    if not item.choices:
        return Draft(text=(await ask(text_agent(text), prompt=item.prompt, **more)).text)
    chosen = await ask(choice_agent(choice, len(item.choices)), **question(item), **more)
    return Draft(text=item.choices[chosen.index], choice=chosen.index)
