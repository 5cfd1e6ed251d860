"""The task without a word of who is spoken of: the plain prompt of the version without a label."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.errors import Unsuited
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.prompts import load

TAG = "without_label"  # where an item carries its own words without a label
_TEXT, _CHOICE = load("baselines/default_text"), load("baselines/default_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """One call with the plain task, its label taken out before anybody is asked. Only items that
    carry such words can be answered so: those of `swap`."""

    name: ClassVar[str] = "blind"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(_TEXT), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(TAG, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words without a label: blind works on `swap`, where the "
                "prompt has such a version"
            )
        return await answer_once(replace(item, prompt=words), ask, _TEXT, _CHOICE)
