"""The model as it is: the plain task, no word about fairness (StarDTox paper, IV-B)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.prompts import load

_TEXT = load("baselines/default_text")
_CHOICE = load("baselines/default_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPrompt:
    """One call with the plain task."""

    name: ClassVar[str] = "default"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(_TEXT), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        return await answer_once(item, ask, _TEXT, _CHOICE)
