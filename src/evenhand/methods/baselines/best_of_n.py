"""Best of n: several answers side by side, of which the one wins that a judge likes best."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Choice, Chosen, FreeText, Read, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UserError
from evenhand.methods.baselines.drafts import PLAIN_CHOICE, PLAIN_TEXT, stored_draft
from evenhand.methods.baselines.single_prompt import choice_agent, question
from evenhand.methods.stardtox import harm_of, judges, support_of
from evenhand.methods.support import ChoiceBrain, of_choice, support_by_rule

_TEMPERATURE = 0.7  # as for self-consistency: among equal answers there is nothing to choose
WRITER = Agent("generator", PLAIN_TEXT, FreeText, temperature=_TEMPERATURE)


def solver(options: int) -> Agent[Chosen]:
    return choice_agent(PLAIN_CHOICE, options, Choice, _TEMPERATURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfN:
    """`n` answers to the plain task, judged as StarDTox judges them. Equal answers are judged
    once, a single one not at all; of those with equal scores the first wins."""

    name: ClassVar[str] = "best_of_n"
    calls_an_item: ClassVar[str] = "4 to 8"

    n: Annotated[int, Field(ge=1)] = 4  # our choice
    read: Read = "json"  # as for StarDTox
    choice_brain: ChoiceBrain = "llm"  # as for StarDTox

    def agents(self) -> tuple[Agent[Any], ...]:
        of_text, llm = judges(self.read)
        return WRITER, solver(3), of_text, of_choice(self.choice_brain, llm)

    def within(self, calls: int) -> Self:
        """An answer and a verdict each, if all answers differ; one answer needs no verdict."""
        if calls < 1:
            raise UserError(f"{self.name} makes at least 1 call an item; {calls} are allowed")
        return replace(self, n=max(1, calls // 2))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        drafts = await self._different(item, ask)
        if len(drafts) > 1:
            drafts = await side_by_side(*(self._judged(item, draft, ask) for draft in drafts))
        best = max(drafts, key=_merit)  # the first of equals
        return Answer(
            drafts=(best,) if best is drafts[0] else (drafts[0], best), stopped="single_pass"
        )

    async def _judged(self, item: Item, draft: Draft, ask: Ask) -> Draft:
        if not item.choices:
            harm, _ = await harm_of(item, draft, ask, self.read)
            return replace(draft, scores={"harm": harm})
        if self.choice_brain == "rule":
            support, _ = await support_by_rule(item, draft, ask)
        else:
            support, _ = await support_of(item, draft, ask, self.read)
        return replace(draft, scores={"support": support})

    async def _different(self, item: Item, ask: Ask) -> list[Draft]:
        """The answers without repetitions. One that is there already is the first of the `n`."""
        stored = stored_draft(item)
        drafts = [stored] if stored else []
        drafts += await side_by_side(*(_draft(item, ask) for _ in range(self.n - len(drafts))))
        different: dict[tuple[int | None, str], Draft] = {}
        for draft in drafts:
            different.setdefault((draft.choice, draft.text), draft)
        return list(different.values())


async def _draft(item: Item, ask: Ask) -> Draft:
    if not item.choices:
        return Draft(text=(await ask(WRITER, prompt=item.prompt)).text)
    chosen = await ask(solver(len(item.choices)), **question(item))
    return Draft(text=item.choices[chosen.index], choice=chosen.index)


def _merit(draft: Draft) -> float:
    """A question's drafts have a support, a text's a harm, a single draft neither."""
    return draft.scores.get("support", 0.0) - draft.scores.get("harm", 0.0)
