"""A text is judged by a harm of the user's own, as it would be in use: nothing is written and
nothing repaired."""

from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask
from evenhand.domain import Answer, Draft, Item
from evenhand.methods.evaluators import judge_of_texts

SCORE = "harm"


_COMMAND = "evenhand audit harm"
AS_WRITTEN = judge_of_texts("harm", _COMMAND)
SWAPPED = judge_of_texts("harm_swapped", _COMMAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmCheck:
    """The verdict on the item's text, by the judge as it is written or with its options swapped."""

    name: ClassVar[str] = "harm_check"

    def agents(self) -> tuple[Agent[Any], ...]:
        return AS_WRITTEN, SWAPPED

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judge = SWAPPED if item.tags["part"] == "order" else AS_WRITTEN
        reply = await ask(judge, draft=item.prompt)
        draft = Draft(text="; ".join(reply.because), scores={SCORE: reply.toxicity})
        return Answer(drafts=(draft,), stopped="single_pass")
