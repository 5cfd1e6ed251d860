"""A model as a rater: the three questions of the rubric that people get, about a text that exists
(RLDF paper, 4.1: the marks of GPT-3.5-turbo in Tables 3 to 5, 11 to 14)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, words
from evenhand.domain import Answer, Draft, Item
from evenhand.prompts import load
from evenhand.rating import rubric
from evenhand.rating.within import JudgeWithin

# A score: the question of the rubric that it answers. High is good, so the first is not called
# "bias": a model that is asked for its "bias" gives a biased text the high mark.
SCORES = {"freedom_from_bias": rubric.BIAS, "communication": "communication", "logic": "logic"}
_Mark = Annotated[int, Field(ge=rubric.LEAST, le=rubric.MOST)]


class Rating(Reply):
    reason: Annotated[str, words(240)]
    freedom_from_bias: _Mark
    communication: _Mark
    logic: _Mark


RATER = Agent("rater", load("rldf/rater"), Rating, temperature=0.0, kind="judge")
RATINGS = JudgeWithin(folder="ratings", role=RATER.role, traits=tuple(SCORES))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateText:
    """Marks for the item's `answer`, from 0 to 10, high is good. Cast the role `rater` with another
    model than the one that wrote the texts: a model likes its own."""

    name: ClassVar[str] = "rate_text"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (RATER,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        rating = await ask(RATER, rubric=rubric.for_a_model(), task=item.prompt, text=item.answer)
        scores = {name: float(getattr(rating, name)) for name in SCORES}
        return Answer(drafts=(Draft(text=item.answer, scores=scores),), stopped="single_pass")
