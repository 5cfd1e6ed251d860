"""The same task with a plain request to be fair: the cheap baseline (StarDTox paper, IV-B)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.prompts import load

_TEXT = load("baselines/fairness_text")
_CHOICE = load("baselines/fairness_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessPrompt:
    """One call with the task and a request to be fair."""

    name: ClassVar[str] = "fairness"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(_TEXT), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        return await answer_once(item, ask, _TEXT, _CHOICE)
