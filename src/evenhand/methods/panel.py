"""A panel of judges with personas: each marks alone, then they discuss in turn and mark again, and
the mean of what they hold at the end is the consensus (MALIBU paper, 3.3).

| round | a judge sees, beside the item                  | asked        |
| ----- | ---------------------------------------------- | ------------ |
| 1     | nothing                                        | side by side |
| 2 …   | all that was said, its own words among it      | in turn      |

The first round asks in the very words of an independent judge. So the first draft is what the
panel says without discussion, the last one what it says after it.

A panel of mixed models: with `models` = 2 the roles are `judge` and `judge_2`, and the cast can
give each to a model of its own. The personas take them in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UserError
from evenhand.methods.judging import (
    JUDGES,
    ROLE,
    Asked,
    Compared,
    ComparedByThree,
    Metrics,
    Rated,
    RatedByThree,
    Verdict,
    asked_by,
    listed,
    marks_of,
    mean_of,
)

# Paper 3.3: "unique personas … to prevent responsibility overlap"; it names none. Figures 2 and 3
# have four agents. These are ours: tasks, not groups, so that no judge has an identity of its own.
PERSONAS = (
    "an expert in the field of the task",
    "somebody who has to act on what was written",
    "an editor who looks for clear and honest writing",
    "a sceptic who checks every claim",
)

SPEAKERS: Mapping[Metrics, Asked] = {
    "four": Asked(asked_by("discuss_single", Rated), asked_by("discuss_pair", Compared)),
    "three": Asked(
        asked_by("discuss_single_three", RatedByThree),
        asked_by("discuss_pair_three", ComparedByThree),
    ),
}
Seat = tuple[str, str]  # a persona, and the role of who plays it


def roles_of(models: int) -> tuple[str, ...]:
    """The roles that so many models play on a panel."""
    return (ROLE, *(f"{ROLE}_{number}" for number in range(2, models + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """
    >>> method = Panel(rounds=3)

    A draft is the mean of a round. The consensus is the mean of the last one: the paper has judges
    "contribute to the final consensus" (3.3) and does not say how. A moderator would be one more
    judge, who has the last word. Each judge's own marks are in the turns.
    """

    name: ClassVar[str] = "panel"
    calls_an_item: ClassVar[str] = "8 (personas × rounds)"

    personas: str = "; ".join(PERSONAS)  # split at ";"; they speak in this order
    # Our choice: the paper says "iterative rounds of discussion" (3.3), not how many. The first,
    # in which judges "evaluate responses individually" (3.3), counts as one.
    rounds: Annotated[int, Field(ge=1)] = 2
    models: Annotated[int, Field(ge=1)] = 1  # the paper's panels are of one model
    metrics: Metrics = "four"

    def __post_init__(self) -> None:
        personas = len(listed(self.personas))
        if self.models > personas:
            raise UserError(f"{self.models} models are too many for {personas} personas")

    def seats(self) -> list[Seat]:
        return list(zip(listed(self.personas), cycle(roles_of(self.models)), strict=False))

    def agents(self) -> tuple[Agent[Any], ...]:
        kinds = (JUDGES[self.metrics], SPEAKERS[self.metrics])
        players = [kind.played_by(role) for role in roles_of(self.models) for kind in kinds]
        return tuple(agent for player in players for agent in (player.single, player.pair))

    def within(self, calls: int) -> Self:
        """As many rounds as fit; the judges stay the same."""
        judges = len(listed(self.personas))
        if calls < judges:
            raise UserError(
                f"a panel of {judges} makes {judges} calls a round; {calls} are allowed"
            )
        return replace(self, rounds=calls // judges)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        verdicts = await self._alone(item, ask)
        drafts = [_round(1, verdicts)]
        statements = [
            _words(*spoken) for spoken in zip(listed(self.personas), verdicts, strict=True)
        ]
        for number in range(2, self.rounds + 1):
            verdicts = await self._in_turn(item, statements, ask)
            drafts.append(_round(number, verdicts))
        return Answer(drafts=tuple(drafts), stopped="max_rounds")

    async def _alone(self, item: Item, ask: Ask) -> list[Verdict]:
        judges = JUDGES[self.metrics]
        asks = (
            ask(judges.played_by(role).about(item), material=item.prompt, persona=persona)
            for persona, role in self.seats()
        )
        return list(await side_by_side(*asks))

    async def _in_turn(self, item: Item, statements: list[str], ask: Ask) -> list[Verdict]:
        """One round of discussion; what is said in it is added to what everybody hears."""
        verdicts: list[Verdict] = []
        for persona, role in self.seats():
            speaker = SPEAKERS[self.metrics].played_by(role).about(item)
            verdict = await ask(
                speaker, material=item.prompt, said=tuple(statements), persona=persona
            )
            verdicts.append(verdict)
            statements.append(_words(persona, verdict))
        return verdicts


def _words(persona: str, verdict: Verdict) -> str:
    """A verdict as the others hear it."""
    if isinstance(verdict, Rated | RatedByThree):
        return f"{persona}: {verdict.reason}\n{_marks(verdict)}"
    pair = f"first: {_marks(verdict.first)}\nsecond: {_marks(verdict.second)}"
    return f"{persona}: {verdict.reason}\n{pair}\npreferred: {verdict.preferred}"


def _marks(reply: Reply) -> str:
    return ", ".join(f"{metric} {mark:.0f}" for metric, mark in marks_of(reply).items())


def _round(number: int, verdicts: Sequence[Verdict]) -> Draft:
    spoken = [Draft(text=verdict.reason, scores=verdict.scores()) for verdict in verdicts]
    return mean_of(spoken, f"round {number}, mean of {len(spoken)} judges")
