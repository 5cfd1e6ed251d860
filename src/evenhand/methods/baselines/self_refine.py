"""Self-Refine: one model answers, gives itself feedback and refines (Madaan et al. 2023)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, words
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UserError
from evenhand.methods.baselines.drafts import PLAIN_CHOICE, PLAIN_TEXT, first_draft
from evenhand.methods.baselines.single_prompt import choice_agent, draft_by, question, text_agent
from evenhand.prompts import load


class Feedback(Reply):
    feedback: Annotated[str, words(400)]
    stop: bool


# The same role throughout: a cast cannot give the feedback to another model. A judge, since its
# `stop` decides whether the text stays as it is.
CHOICE_FEEDBACK = Agent("generator", load("baselines/feedback_choice"), Feedback, kind="judge")
TEXT_FEEDBACK = Agent("generator", load("baselines/feedback_text"), Feedback, kind="judge")
_TEXT = load("baselines/refine_text")
_CHOICE = load("baselines/refine_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfRefine:
    """Ends when the feedback asks for no change, or after so many refinements."""

    name: ClassVar[str] = "self_refine"
    calls_an_item: ClassVar[str] = "2 to 9"

    max_iterations: Annotated[int, Field(ge=0)] = 4  # the paper repeats at most four times

    def agents(self) -> tuple[Agent[Any], ...]:
        texts = text_agent(PLAIN_TEXT), TEXT_FEEDBACK, text_agent(_TEXT)
        return *texts, choice_agent(PLAIN_CHOICE, 3), CHOICE_FEEDBACK, choice_agent(_CHOICE, 3)

    def within(self, calls: int) -> Self:
        """One call to answer, and two for each refinement."""
        if calls < 1:
            raise UserError(f"{self.name} makes at least 1 call an item; {calls} are allowed")
        return replace(self, max_iterations=(calls - 1) // 2)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        drafts = [await first_draft(item, ask)]
        history: list[tuple[str, str]] = []
        for _ in range(self.max_iterations):
            said = await _feedback(item, drafts[-1], ask)
            if said.stop:
                return Answer(drafts=tuple(drafts), stopped="accepted")
            history.append((drafts[-1].text, said.feedback))
            drafts.append(await draft_by(item, ask, _TEXT, _CHOICE, history=history))
        return Answer(drafts=tuple(drafts), stopped="max_iterations")


async def _feedback(item: Item, draft: Draft, ask: Ask) -> Feedback:
    if item.choices:
        return await ask(CHOICE_FEEDBACK, **question(item), draft=draft.text)
    return await ask(TEXT_FEEDBACK, prompt=item.prompt, draft=draft.text)
