"""The model as it is: the plain task, no word about fairness (StarDTox paper, IV-B)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.errors import Unsuited, UserError
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.prompts import Prompt, load

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
    # Of what is said around a question with choices; the question is in its own.
    language: Literal["en", "es", "ca", "de", "ko", "zh"] = field(
        default="en", metadata={"left_out": "en"}
    )

    def __post_init__(self) -> None:
        if not 1 <= self.wording <= len(_CHOICES):
            raise UserError(f"there is no wording {self.wording}; there are 1 to {len(_CHOICES)}")
        if self.wording > 1 and self.language != "en":
            raise UserError(f"wording {self.wording} is in English alone: leave out wording")

    @property
    def _choice(self) -> Prompt:
        if self.language == "en":
            return _CHOICES[self.wording - 1]
        return load(f"baselines/default_choice_{self.language}")

    def agents(self) -> tuple[Agent[Any], ...]:
        choice = choice_agent(self._choice, 3)
        return (text_agent(_TEXT), choice) if self.wording == 1 else (choice,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if self.wording > 1 and not item.choices:
            raise Unsuited(
                f"item {item.id!r} has no choices, and the plain prompt of a text has one wording: "
                "leave out wording"
            )
        return await answer_once(item, ask, _TEXT, self._choice)
