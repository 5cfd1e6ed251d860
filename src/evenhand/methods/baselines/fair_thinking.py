"""A jury: several sides are heard, then one decides (after FairThinking, Li et al. 2024)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, side_by_side, words
from evenhand.domain import Answer, Item
from evenhand.errors import UserError
from evenhand.methods.baselines.single_prompt import choice_agent, draft_by, question, text_agent
from evenhand.prompts import load

# Our own: stakes, not groups. The paper has roles made up for each question, which can bring in the
# very stereotypes that are to be kept out.
PERSONAS = (
    "one of the people whom this is about",
    "somebody who is often judged by a group they belong to and not by what they did",
    "an onlooker without a stake, who holds to what is stated",
    "somebody who must act on the answer and bears the cost if it is wrong",
    "a friend of somebody whom this is about, who wants all of them treated alike",
    "somebody who gives advice to people of every kind",
    "a newcomer who does not know what is commonly assumed here",
)


class View(Reply):
    view: Annotated[str, words(400)]


CHOICE_JUROR = Agent("juror", load("baselines/juror_choice"), View)
TEXT_JUROR = Agent("juror", load("baselines/juror_text"), View)
_TEXT = load("baselines/foreperson_text")
_CHOICE = load("baselines/foreperson_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class FairThinking:
    """The jurors are asked side by side; then the generator, as their foreperson, decides."""

    name: ClassVar[str] = "fair_thinking"
    calls_an_item: ClassVar[str] = "4 (jurors + 1)"

    jurors: Annotated[int, Field(ge=1, le=len(PERSONAS))] = 3  # our choice; each speaks once

    def agents(self) -> tuple[Agent[Any], ...]:
        return CHOICE_JUROR, TEXT_JUROR, choice_agent(_CHOICE, 3), text_agent(_TEXT)

    def within(self, calls: int) -> Self:
        """One call a juror and one to decide; there are no more jurors than personas."""
        if calls < 2:
            raise UserError(f"{self.name} makes at least 2 calls an item; {calls} are allowed")
        return replace(self, jurors=min(calls - 1, len(PERSONAS)))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        juror = CHOICE_JUROR if item.choices else TEXT_JUROR
        variables = question(item) if item.choices else {"prompt": item.prompt}
        jury = PERSONAS[: self.jurors]
        replies = await side_by_side(
            *(ask(juror, **variables, persona=persona) for persona in jury)
        )
        views = [reply.view for reply in replies]
        decision = await draft_by(item, ask, _TEXT, _CHOICE, views=views)
        return Answer(drafts=(decision,), stopped="single_pass")
