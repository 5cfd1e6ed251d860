"""The first draft of a method that goes on from one."""

from evenhand.agents import Ask
from evenhand.domain import Draft, Item
from evenhand.methods.baselines.single_prompt import draft_by
from evenhand.prompts import load

PLAIN_TEXT = load("baselines/default_text")
PLAIN_CHOICE = load("baselines/default_choice")


async def first_draft(item: Item, ask: Ask) -> Draft:
    """The answer that is there already, or else the model's own to the plain task."""
    return stored_draft(item) or await draft_by(item, ask, PLAIN_TEXT, PLAIN_CHOICE)


def stored_draft(item: Item) -> Draft | None:
    if not item.answer:
        return None
    return Draft(text=item.answer, choice=item.choices.index(item.answer) if item.choices else None)
