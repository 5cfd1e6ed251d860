"""The model as it is: the plain task, no word about fairness (StarDTox paper, IV-B)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.errors import Unsuited, UserError
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.prompts import load

_TEXT = load("baselines/default_text")
# The same task in three wordings of ours, for how much of a score is the wording. The second names
# parts otherwise; the third also puts the options before the question.
_CHOICES = tuple(
    load(f"baselines/{name}") for name in ("default_choice", "default_choice_2", "default_choice_3")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPrompt:
    """One call with the plain task."""

    name: ClassVar[str] = "default"
    calls_an_item: ClassVar[str] = "1"

    wording: int = 1  # of questions with choices

    def __post_init__(self) -> None:
        if not 1 <= self.wording <= len(_CHOICES):
            raise UserError(f"there is no wording {self.wording}; there are 1 to {len(_CHOICES)}")

    def agents(self) -> tuple[Agent[Any], ...]:
        choice = choice_agent(_CHOICES[self.wording - 1], 3)
        return (text_agent(_TEXT), choice) if self.wording == 1 else (choice,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if self.wording > 1 and not item.choices:
            raise Unsuited(
                f"item {item.id!r} has no choices, and the plain prompt of a text has one wording: "
                "leave out wording"
            )
        return await answer_once(item, ask, _TEXT, _CHOICES[self.wording - 1])
