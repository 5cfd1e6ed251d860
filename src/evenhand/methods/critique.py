"""Does the content of the feedback matter? Two controls for a loop that revises by feedback.

The judge is asked as ever, and decides as ever whether to revise. Only the words that the reviser
sees are others: none at all ("empty"), or those said of another item ("other").
"""

from typing import Literal

from evenhand.agents import Agent, Ask, FreeText
from evenhand.domain import Item
from evenhand.prompts import load

Critique = Literal["own", "empty", "other"]

EMPTY = "Please look at it again."
OTHER_CRITIQUE = Agent(
    "other_critique",
    load("baselines/other_critique"),
    FreeText,
    kind="tool",
    cast_as=(
        "name the run whose critiques the placebo critic takes as `other_critique` in the cast: "
        '"run:FOLDER" in the config file, critiques_of("FOLDER") in Python'
    ),
)


def critics(critique: Critique) -> tuple[Agent[FreeText], ...]:
    """Whom a loop asks beside its own agents."""
    return (OTHER_CRITIQUE,) if critique == "other" else ()


async def shown(
    critique: Critique, own_notes: tuple[str, ...], item: Item, ask: Ask
) -> tuple[str, ...]:
    """What the reviser is shown in place of the loop's own notes."""
    if critique == "own":
        return own_notes
    if critique == "empty":
        return (EMPTY,)
    return ((await ask(OTHER_CRITIQUE, item=item.id)).text,)
