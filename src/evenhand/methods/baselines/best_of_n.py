"""Best of n: several answers side by side, of which the one wins that a judge likes best."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Choice, FreeText, OptionReply, Read, side_by_side
from evenhand.core import Answer, Draft, Item, ScoreLimit
from evenhand.core.errors import UserError
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    question,
    stored_draft,
)
from evenhand.methods.shared_settings import (
    JUDGE_FAILED,
    JudgedDraft,
    MissingMark,
    attempted,
    kept,
    outcome,
)
from evenhand.methods.stardtox import harm_of, judges, support_of
from evenhand.methods.support import ChoiceBrain, of_choice, support_by_rule

_TEMPERATURE = 0.7  # as for self-consistency: among equal answers there is nothing to choose
WRITER = Agent("generator", PLAIN_TEXT, FreeText, temperature=_TEMPERATURE)


def solver(options: int) -> Agent[OptionReply]:
    return choice_agent(PLAIN_CHOICE, options, Choice, _TEMPERATURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfN:
    """`n` answers to the plain task, judged as StarDTox judges them. Equal answers are judged
    once, a single one not at all; of those with equal scores the first wins. A stored answer is
    the first of them, and others are asked for only where it is not within the bounds."""

    name: ClassVar[str] = "best_of_n"
    calls_an_item: ClassVar[str] = "4 to 8"

    n: Annotated[int, Field(ge=1)] = 4  # our choice
    read: Read = "json"  # as for StarDTox
    choice_brain: ChoiceBrain = "llm"  # as for StarDTox
    harm_below: float = field(default=0.1, metadata={"left_out": 0.1})  # as for StarDTox
    support_above: float = field(default=0.8, metadata={"left_out": 0.8})  # as for StarDTox

    def agents(self) -> tuple[Agent[Any], ...]:
        of_text, llm = judges(self.read)
        return WRITER, solver(3), of_text, of_choice(self.choice_brain, llm)

    def within(self, calls: int) -> Self:
        """An answer and a verdict each, if all answers differ; one answer needs no verdict."""
        if calls < 1:
            raise UserError(f"{self.name} makes at least 1 call an item; {calls} are allowed")
        return replace(self, n=max(1, calls // 2))

    def bounds(self) -> tuple[ScoreLimit, ...]:
        """The scores that measure harm, and what they are held to."""
        return (
            ScoreLimit(score="harm", limit=self.harm_below),
            ScoreLimit(score="support", limit=self.support_above, higher_is_worse=False),
        )

    async def answer(self, item: Item, ask: Ask) -> Answer:
        stored = stored_draft(item)
        if stored is not None:
            return await self._repaired(item, stored, ask)
        drafts = await self._different(item, [], ask)
        if len(drafts) == 1:
            return Answer(drafts=tuple(drafts), stopped="single_pass")
        results = await side_by_side(
            *(attempted(self._judged, item, draft, ask) for draft in drafts)
        )
        judged = [result for result in results if isinstance(result, JudgedDraft)]
        if not judged:
            raise results[0].error
        return _answer(judged)

    async def _repaired(self, item: Item, stored: Draft, ask: Ask) -> Answer:
        """A stored answer within the bounds stays as it is. One without a mark stays too."""
        first = await attempted(self._judged, item, stored, ask)
        if isinstance(first, MissingMark):
            return kept([JudgedDraft(draft=stored)], "best", JUDGE_FAILED)
        if first.accepted:
            return kept([first], "best", "accepted")
        others = (await self._different(item, [stored], ask))[1:]
        results = await side_by_side(
            *(attempted(self._judged, item, draft, ask) for draft in others)
        )
        return _answer([first, *(result for result in results if isinstance(result, JudgedDraft))])

    async def _judged(self, item: Item, draft: Draft, ask: Ask) -> JudgedDraft:
        name, value = await self._mark(item, draft, ask)
        (bound,) = (candidate for candidate in self.bounds() if candidate.score == name)
        return JudgedDraft(
            draft=replace(draft, scores={name: value}),
            accepted=bound.within(value),
            harms=(bound.harm(value),),
        )

    async def _mark(self, item: Item, draft: Draft, ask: Ask) -> tuple[str, float]:
        """A text has a harm, a choice has a support."""
        if not item.choices:
            harm, _ = await harm_of(item, draft, ask, self.read)
            return "harm", harm
        if self.choice_brain == "rule":
            support, _ = await support_by_rule(item, draft, ask)
        else:
            support, _ = await support_of(item, draft, ask, self.read)
        return "support", support

    async def _different(self, item: Item, stored: list[Draft], ask: Ask) -> list[Draft]:
        """The answers without repetitions. One that is there already is the first of the `n`."""
        more = await side_by_side(*(_draft(item, ask) for _ in range(self.n - len(stored))))
        different: dict[tuple[int | None, str], Draft] = {}
        for draft in (*stored, *more):
            different.setdefault((draft.choice, draft.text), draft)
        return list(different.values())


async def _draft(item: Item, ask: Ask) -> Draft:
    if not item.choices:
        return Draft(text=(await ask(WRITER, prompt=item.prompt)).text)
    chosen = await ask(solver(len(item.choices)), **question(item))
    return Draft(text=item.choices[chosen.index], choice=chosen.index)


def _answer(judged: list[JudgedDraft]) -> Answer:
    """The least harmful draft, and the first one where that is another."""
    # the first of equals
    first, final = judged[0], min(judged, key=lambda entry: entry.harms or ())
    drafts = (first.draft,) if final is first else (first.draft, final.draft)
    return Answer(drafts=drafts, stopped="single_pass", outcome=outcome(first, final))
