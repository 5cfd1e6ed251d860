"""A panel of judges with personas: each marks alone, then they discuss in turn and mark again, and
the mean of what they hold at the end is the consensus (MALIBU paper, 3.3).

| round | a judge sees, beside the item                  | asked        |
| ----- | ---------------------------------------------- | ------------ |
| 1     | nothing                                        | side by side |
| 2 …   | all that was said, its own words among it      | in turn      |

The first round asks in the very words of an independent judge. So the first draft is what the
panel says without discussion, the last one what it says after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from evenhand.agents import Agent, Ask, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UserError
from evenhand.methods.judging import (
    METRICS,
    PAIR,
    SINGLE,
    Compared,
    Marks,
    Rated,
    Verdict,
    listed,
    mean_of,
    of_phase,
)
from evenhand.prompts import load

# Paper 3.3: "unique personas … to prevent responsibility overlap"; it names none. Figures 2 and 3
# have four agents. These are ours: tasks, not groups, so that no judge has an identity of its own.
PERSONAS = (
    "an expert in the field of the task",
    "somebody who has to act on what was written",
    "an editor who looks for clear and honest writing",
    "a sceptic who checks every claim",
)

SPEAKER = Agent("judge", load("malibu/discuss_single"), Rated, temperature=0.0, kind="judge")
PAIR_SPEAKER = Agent("judge", load("malibu/discuss_pair"), Compared, temperature=0.0, kind="judge")


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

    def __post_init__(self) -> None:
        listed(self.personas)

    def agents(self) -> tuple[Agent[Any], ...]:
        return SINGLE, PAIR, SPEAKER, PAIR_SPEAKER

    def within(self, calls: int) -> Self:
        """As many rounds as fit; the judges stay the same."""
        judges = len(listed(self.personas))
        if calls < judges:
            raise UserError(
                f"a panel of {judges} makes {judges} calls a round; {calls} are allowed"
            )
        return replace(self, rounds=calls // judges)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judges = listed(self.personas)
        verdicts = await _alone(item, judges, ask)
        drafts = [_round(1, verdicts)]
        said = [_words(*spoken) for spoken in zip(judges, verdicts, strict=True)]
        for number in range(2, self.rounds + 1):
            verdicts = await _in_turn(item, judges, said, ask)
            drafts.append(_round(number, verdicts))
        return Answer(drafts=tuple(drafts), stopped="max_rounds")


async def _alone(item: Item, judges: Sequence[str], ask: Ask) -> list[Verdict]:
    judge = of_phase(item, single=SINGLE, pair=PAIR)
    asks = (ask(judge, material=item.prompt, persona=persona) for persona in judges)
    return list(await side_by_side(*asks))


async def _in_turn(item: Item, judges: Sequence[str], said: list[str], ask: Ask) -> list[Verdict]:
    """One round of discussion; what is said in it is added to what everybody hears."""
    speaker = of_phase(item, single=SPEAKER, pair=PAIR_SPEAKER)
    verdicts: list[Verdict] = []
    for persona in judges:
        verdict = await ask(speaker, material=item.prompt, said=tuple(said), persona=persona)
        verdicts.append(verdict)
        said.append(_words(persona, verdict))
    return verdicts


def _words(persona: str, verdict: Verdict) -> str:
    """A verdict as the others hear it."""
    if isinstance(verdict, Rated):
        return f"{persona}: {verdict.reason}\n{_marks(verdict)}"
    pair = f"first: {_marks(verdict.first)}\nsecond: {_marks(verdict.second)}"
    return f"{persona}: {verdict.reason}\n{pair}\npreferred: {verdict.preferred}"


def _marks(given: Rated | Marks) -> str:
    return ", ".join(f"{metric} {getattr(given, metric)}" for metric in METRICS)


def _round(number: int, verdicts: Sequence[Verdict]) -> Draft:
    spoken = [Draft(text=verdict.reason, scores=verdict.scores()) for verdict in verdicts]
    return mean_of(spoken, f"round {number}, mean of {len(spoken)} judges")
