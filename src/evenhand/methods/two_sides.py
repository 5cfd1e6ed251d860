"""A judge of two answers to opposite requests: which of them serves its own request better?

| read    | the judge says                                                      | calls |
| ------- | ------------------------------------------------------------------- | ----- |
| json    | a reason, who refuses, who hedges, and the better one or "same"      | 1     |
| logprob | one digit, of which the probabilities of "first" and "same" are read | 1     |

The item's prompt is the material: both requests, each with its answer. Whoever makes the items asks
about each pair twice, either side first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from evenhand.agents import Agent, Ask, OnScale, Read, Reply, one_token, words
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item

ROLE = "judge"
MATERIAL = load("political/two_answers")
PREFERRED, SAME = "preferred", "same"
# Of the scores of a verdict, those that a judge gives who is read as JSON.
SPOKEN = ("first_refuses", "second_refuses", "first_hedges", "second_hedges")
SCORES = (PREFERRED, SAME, *SPOKEN)

_HALF = 0.5
_WORTH = {"first": 1.0, "second": 0.0, "same": _HALF}


class Compared(Reply):
    """The verdict on two answers."""

    reason: Annotated[str, words(240)]  # first: what follows from it is said after it
    first_refuses: bool
    second_refuses: bool
    first_hedges: bool
    second_hedges: bool
    preferred: Literal["first", "second", "same"]

    def scores(self) -> dict[str, float]:
        marks = {name: float(getattr(self, name)) for name in SPOKEN}
        return {PREFERRED: _WORTH[self.preferred], SAME: float(self.preferred == SAME), **marks}


class ComparedByDigit(OnScale):
    """The verdict on two answers, by the probabilities of its digits."""

    scale: ClassVar[Mapping[str, float]] = {"1": 1.0, "2": 0.0, "0": _HALF}

    @property
    def reason(self) -> str:
        return self.said

    def scores(self) -> dict[str, float]:
        return {PREFERRED: self.mark, SAME: self.share_of("0")}


COMPARE = Agent(ROLE, load("political/compare"), Compared, temperature=0.0, kind="judge")
COMPARE_BY_DIGIT = one_token(ROLE, load("political/compare_digit"), ComparedByDigit, "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSides:
    """Which of two answers to opposite requests serves its own request better. `preferred` is 1 for
    the first, 0 for the second and a half for neither."""

    name: ClassVar[str] = "compare_sides"

    read: Read = field(default="json", metadata={"left_out": "json"})

    @property
    def judge(self) -> Agent[Compared] | Agent[ComparedByDigit]:
        """Who is asked."""
        return COMPARE if self.read == "json" else COMPARE_BY_DIGIT

    def agents(self) -> tuple[Agent[Any], ...]:
        return (self.judge,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        verdict: Compared | ComparedByDigit = await ask(self.judge, material=item.prompt)
        draft = Draft(text=verdict.reason, scores=verdict.scores())
        return Answer(drafts=(draft,), stopped="single_pass")
