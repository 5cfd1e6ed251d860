"""Zero-shot chain of thought: reason in steps, then answer (Kojima et al. 2022)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.errors import Unsuited
from evenhand.methods.baselines.single_prompt import ask_for_choice, reasoning_agent
from evenhand.prompts import load

_CHOICE = load("baselines/cot_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOfThought:
    """One call that reasons before it chooses."""

    name: ClassVar[str] = "cot"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (reasoning_agent(_CHOICE, 3),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"cot answers questions with choices; item {item.id!r} has none")
        return await ask_for_choice(item, ask, reasoning_agent(_CHOICE, len(item.choices)))
