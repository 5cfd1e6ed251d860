"""An independent judge: four marks for one candidate, or for each of two and the better of them
(MALIBU paper, 3.5).

| phase of the item | the judge says                                  | calls                    |
| ----------------- | ----------------------------------------------- | ------------------------ |
| single            | a reason, four marks                            | personas × wordings      |
| pair              | a reason, four marks for each, which is better  | personas × wordings      |
| own               | which is better, as another judge does          | 6: `self_preference.py`  |

The item's prompt is the material: the task and what the candidates wrote. Its tag `phase` says
which of them it is. How a judge can be asked in several wordings: `counterfactual.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, side_by_side, words
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UserError
from evenhand.methods.counterfactual import Counterfactual, wordings
from evenhand.methods.self_preference import PHASE as OWN
from evenhand.methods.self_preference import of_two_families, own_or_other
from evenhand.prompts import load

METRICS = ("creativity", "accuracy", "efficiency", "reliability")  # paper 3.4
_WORTH = {"first": 1.0, "second": 0.0, "tie": 0.5}

# Whole numbers: an endpoint can be held to a range of them but not to one decimal, histograms and
# tests for ordinal scores need a fixed set of levels, and what is finer than one point shows in the
# mean of four metrics over many scenarios. Any other number is unreadable; none is rounded.
Mark = Annotated[int, Field(ge=0, le=10)]
Reason = Annotated[str, words(240)]


class Marks(Reply):
    creativity: Mark
    accuracy: Mark
    efficiency: Mark
    reliability: Mark


class Rated(Reply):
    """The verdict on one candidate."""

    reason: Reason
    creativity: Mark
    accuracy: Mark
    efficiency: Mark
    reliability: Mark

    def scores(self) -> dict[str, float]:
        return {metric: float(getattr(self, metric)) for metric in METRICS}


class Compared(Reply):
    """The verdict on two candidates."""

    reason: Reason
    first: Marks
    second: Marks
    preferred: Literal["first", "second", "tie"]  # our choice: the paper has no tie

    def scores(self) -> dict[str, float]:
        marks = {
            f"{slot}_{metric}": float(getattr(getattr(self, slot), metric))
            for slot in ("first", "second")
            for metric in METRICS
        }
        return {**marks, "preferred": _WORTH[self.preferred]}


Verdict = Rated | Compared

SINGLE = Agent("judge", load("malibu/judge_single"), Rated, temperature=0.0, kind="judge")
PAIR = Agent("judge", load("malibu/judge_pair"), Compared, temperature=0.0, kind="judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """
    >>> method = Rate(personas="a teacher; an engineer", counterfactual="swap")

    Every draft is what one persona said of one wording, the first of them the item as it is; where
    there are several, their mean comes last. A judge who cannot be read fails the item: a mean of
    those who can be would be the mean of another panel.
    """

    name: ClassVar[str] = "rate"
    calls_an_item: ClassVar[str] = "1 (personas)"

    personas: str = "a judge"  # our choice: no persona to speak of; several are split at ";"
    counterfactual: Counterfactual = "off"  # our choice: a remedy, paid for in calls

    def __post_init__(self) -> None:
        listed(self.personas)

    def agents(self) -> tuple[Agent[Any], ...]:
        return SINGLE, PAIR, *of_two_families(PAIR)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if item.tags.get("phase") == OWN:
            return await own_or_other(item, ask, PAIR, listed(self.personas)[0])
        judge = of_phase(item, single=SINGLE, pair=PAIR)
        asked = [
            (persona, wording)
            for persona in listed(self.personas)
            for wording in wordings(item, self.counterfactual)
        ]
        verdicts: Sequence[Verdict] = await side_by_side(
            *(ask(judge, material=wording.prompt, persona=persona) for persona, wording in asked)
        )
        drafts = [
            Draft(
                text=verdict.reason,
                reasoning=f"{persona}; {wording.name}",
                scores=slots_exchanged(verdict.scores()) if wording.reversed else verdict.scores(),
            )
            for (persona, wording), verdict in zip(asked, verdicts, strict=True)
        ]
        means = [mean_of(drafts, f"mean of {len(drafts)} verdicts")] if len(drafts) > 1 else []
        return Answer(drafts=(*drafts, *means), stopped="single_pass")


def listed(personas: str) -> tuple[str, ...]:
    """Each persona of a setting once; two equal ones would be one judge with two votes."""
    found = [" ".join(part.split()) for part in personas.split(";")]
    once = tuple(dict.fromkeys(part for part in found if part))
    if not once:
        raise UserError('a judge needs personas: who judges, split at ";"')
    return once


def of_phase(item: Item, *, single: Agent[Rated], pair: Agent[Compared]) -> Agent[Any]:
    agents: Mapping[str, Agent[Any]] = {"single": single, "pair": pair}
    phase = item.tags.get("phase", "")
    if phase not in agents:
        raise UserError(
            f"item {item.id!r} is nothing to judge: its tag 'phase' must be 'single' or 'pair', "
            f"not {phase!r}"
        )
    return agents[phase]


def slots_exchanged(scores: Mapping[str, float]) -> dict[str, float]:
    """The scores of a pair, said of the candidates in the other order."""
    marks = {
        f"{slot}_{metric}": scores[f"{other}_{metric}"]
        for slot, other in (("first", "second"), ("second", "first"))
        for metric in METRICS
    }
    return {**marks, "preferred": 1.0 - scores["preferred"]}


def mean_of(drafts: Sequence[Draft], called: str) -> Draft:
    """The mean of each score; the words are all that were said, each once."""
    reasons = dict.fromkeys(draft.text for draft in drafts)
    return Draft(
        text="\n".join(reasons),
        reasoning=called,
        scores={name: fmean(draft.scores[name] for draft in drafts) for name in drafts[0].scores},
    )
