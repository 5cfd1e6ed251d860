"""Self-Refine: one model answers, gives itself feedback and refines (Madaan et al. 2023)."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, words
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UserError
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    draft_by,
    first_draft,
    question,
    text_agent,
)
from evenhand.methods.shared_settings import (
    JUDGE_FAILED,
    LAST_BEFORE,
    JudgedDraft,
    Keep,
    MissingMark,
    attempted,
    kept,
)


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
    """Ends when the feedback asks for no change, or after so many refinements. A refinement that
    the feedback does not accept is no better than the first draft, which then stays."""

    name: ClassVar[str] = "self_refine"
    calls_an_item: ClassVar[str] = "2 to 10"

    max_iterations: Annotated[int, Field(ge=0)] = 4  # the paper repeats at most four times
    keep: Keep = field(
        default="best", metadata=LAST_BEFORE
    )  # our choice; "last" is the paper's loop

    def agents(self) -> tuple[Agent[Any], ...]:
        texts = text_agent(PLAIN_TEXT), TEXT_FEEDBACK, text_agent(_TEXT)
        return *texts, choice_agent(PLAIN_CHOICE, 3), CHOICE_FEEDBACK, choice_agent(_CHOICE, 3)

    def within(self, calls: int) -> Self:
        """One call to answer, two for each refinement, and one to look at the last one."""
        if calls < 1:
            raise UserError(f"{self.name} makes at least 1 call an item; {calls} are allowed")
        beside = 1 if self.keep == "last" else 2
        return replace(self, max_iterations=max(0, calls - beside) // 2)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judged: list[JudgedDraft] = []
        draft = await first_draft(item, ask)
        history: list[tuple[str, str]] = []
        for iteration in range(self.max_iterations + 1):
            last = iteration == self.max_iterations
            if last and (self.keep == "last" or not iteration):
                judged.append(JudgedDraft(draft=draft))
                break
            review = await attempted(_feedback, item, draft, ask)
            if isinstance(review, MissingMark):
                judged.append(JudgedDraft(draft=draft))
                if self.keep == "last" or (not iteration and not item.answer):
                    raise review.error
                return kept(judged, self.keep, JUDGE_FAILED)
            judged.append(
                JudgedDraft(draft=draft, accepted=review.stop, harms=(float(not review.stop),))
            )
            if review.stop:
                return kept(judged, self.keep, "accepted")
            if not last:
                history.append((draft.text, review.feedback))
                draft = await draft_by(item, ask, _TEXT, _CHOICE, history=history)
        return kept(judged, self.keep, "max_iterations")


async def _feedback(item: Item, draft: Draft, ask: Ask) -> Feedback:
    if item.choices:
        return await ask(CHOICE_FEEDBACK, **question(item), draft=draft.text)
    return await ask(TEXT_FEEDBACK, prompt=item.prompt, draft=draft.text)
