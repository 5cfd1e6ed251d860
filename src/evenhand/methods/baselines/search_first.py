"""Look it up, then answer: the plain task with what a search found (after MABRF paper, RQ4).

The paper's two arms have different prompts. Here the answer is asked for in the words of `default`,
and what was found stands before them: the evidence alone tells the two apart. Where nothing is
found, the request is that of `default`.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask
from evenhand.agents.prompts import load
from evenhand.core import Answer, Item
from evenhand.core.errors import UserError
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    draft_by,
    question,
    text_agent,
)
from evenhand.methods.mabrf import SEARCH, SearchQueries, looked_up
from evenhand.methods.mabrf import SUMMARISER as MABRF_SUMMARISER

# MABRF's are for reasoning about groups of people; these are for any question.
PLANNER = Agent("planner", load("baselines/plan_lookup"), SearchQueries, temperature=0.0)
SUMMARISER = replace(MABRF_SUMMARISER, prompt=load("baselines/sum_up_lookup"))
_TEXT = load("baselines/looked_up_text")
_CHOICE = load("baselines/looked_up_choice")
_MOST_QUERIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFirst:
    """Queries, a search, a summary, an answer. If every query fails, so does the item."""

    name: ClassVar[str] = "search_first"
    calls_an_item: ClassVar[str] = "2 to 6"

    queries: Annotated[int, Field(ge=1, le=_MOST_QUERIES)] = 3  # our choice, as in mabrf

    def agents(self) -> tuple[Agent[Any], ...]:
        answers = [text_agent(prompt) for prompt in (PLAIN_TEXT, _TEXT)]
        choices = [choice_agent(prompt, 3) for prompt in (PLAIN_CHOICE, _CHOICE)]
        return PLANNER, SEARCH, SUMMARISER, *answers, *choices

    def within(self, calls: int) -> Self:
        """One call to plan, one a query, one to sum up, one to answer."""
        if calls < 4:
            raise UserError(
                f"{self.name} needs 4 calls an item, to plan, search, sum up and answer; "
                f"it has {calls}"
            )
        return replace(self, queries=min(calls - 3, _MOST_QUERIES))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        planned = await ask(PLANNER, **question(item), most=self.queries)
        evidence = await looked_up(planned, item, self.queries, SUMMARISER, ask)
        if evidence.facts:
            draft = await draft_by(item, ask, _TEXT, _CHOICE, evidence=evidence.text)
        else:
            draft = await draft_by(item, ask, PLAIN_TEXT, PLAIN_CHOICE)
        return Answer(
            drafts=(replace(draft, scores={"evidence": float(evidence.facts)}),),
            stopped="single_pass" if evidence.facts else "no_evidence",
        )
