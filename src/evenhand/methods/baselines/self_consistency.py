"""Self-consistency: the answer that most of several chains of thought reach (Wang et al. 2023).

The baseline that a team of agents must beat at the same number of calls.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import Unsuited, UserError
from evenhand.methods.baselines.single_prompt import question, reasoning_agent
from evenhand.prompts import load

_CHOICE = load("baselines/cot_choice")
_TEMPERATURE = 0.7  # Wang et al. 2023, section 3.1: equal answers would make no vote


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency:
    """`calls` chains of thought side by side, then a vote; of options with equal votes the one
    that was reached first wins."""

    name: ClassVar[str] = "self_consistency"
    calls_an_item: ClassVar[str] = "5 (calls)"

    calls: Annotated[int, Field(ge=1)] = (
        5  # our choice: set it to the mean number of calls of the method it is compared with
    )

    def agents(self) -> tuple[Agent[Any], ...]:
        return (reasoning_agent(_CHOICE, 3),)

    def within(self, calls: int) -> Self:
        if calls < 1:
            raise UserError(f"self_consistency makes at least 1 call an item; {calls} are allowed")
        return replace(self, calls=calls)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"self_consistency votes among choices; item {item.id!r} has none")
        agent = reasoning_agent(_CHOICE, len(item.choices), _TEMPERATURE)
        replies = await side_by_side(*(ask(agent, **question(item)) for _ in range(self.calls)))
        votes = Counter(reply.index for reply in replies)
        winner = max(votes, key=lambda option: votes[option])  # the first of equals
        share = {"agreement": votes[winner] / self.calls}
        draft = Draft(text=item.choices[winner], choice=winner, scores=share)
        return Answer(drafts=(draft,), stopped="single_pass")
