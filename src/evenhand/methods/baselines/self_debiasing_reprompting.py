"""Self-debiasing by reprompting: answer, then answer anew without bias (Gallegos et al. 2025)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Item
from evenhand.methods.baselines.drafts import PLAIN_CHOICE, PLAIN_TEXT, first_draft
from evenhand.methods.baselines.single_prompt import choice_agent, draft_by, text_agent
from evenhand.prompts import load

_TEXT = load("baselines/reprompt_text")
_CHOICE = load("baselines/reprompt_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDebiasReprompting:
    """Two calls to the same model; one where the first answer is there already."""

    name: ClassVar[str] = "self_debias_reprompting"
    calls_an_item: ClassVar[str] = "2"

    def agents(self) -> tuple[Agent[Any], ...]:
        texts = text_agent(PLAIN_TEXT), text_agent(_TEXT)
        return *texts, choice_agent(PLAIN_CHOICE, 3), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        first = await first_draft(item, ask)
        again = await draft_by(item, ask, _TEXT, _CHOICE, draft=first.text)
        return Answer(drafts=(first, again), stopped="single_pass")
