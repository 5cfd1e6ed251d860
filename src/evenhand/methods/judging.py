"""An independent judge: marks for one candidate, or for each of two and the better of them (MALIBU
paper, 3.5).

| phase of the item | the judge says                                  | calls                    |
| ----------------- | ----------------------------------------------- | ------------------------ |
| single            | a reason, four marks                            | personas × wordings      |
| pair              | a reason, four marks for each, which is better  | personas × wordings      |
| own               | which is better, as another judge does          | 6: `self_preference.py`  |

In the set-up of the paper's earlier experiments (A.2) there are three marks, and nobody is asked
which is better: it is the one with the higher marks.

The item's prompt is the material: the task and what the candidates wrote. Its tag `phase` says
which of them it is. How a judge can be asked in several wordings: `counterfactual.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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

# four: paper 3.4; three: its appendix A.2.
Metrics = Literal["four", "three"]
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


class ThreeMarks(Reply):
    creativity: Mark
    efficiency: Mark
    quality: Mark


class Rated(Reply):
    """The verdict on one candidate."""

    reason: Reason
    creativity: Mark
    accuracy: Mark
    efficiency: Mark
    reliability: Mark

    def scores(self) -> dict[str, float]:
        return marks_of(self)


class RatedByThree(Reply):
    """The verdict on one candidate in the earlier set-up."""

    reason: Reason
    creativity: Mark
    efficiency: Mark
    quality: Mark

    def scores(self) -> dict[str, float]:
        return marks_of(self)


class Compared(Reply):
    """The verdict on two candidates."""

    reason: Reason
    first: Marks
    second: Marks
    preferred: Literal["first", "second", "tie"]  # our choice: the paper has no tie

    def scores(self) -> dict[str, float]:
        return {**_of_both(self.first, self.second), "preferred": _WORTH[self.preferred]}


class ComparedByThree(Reply):
    """The verdict on two candidates in the earlier set-up: the marks say who is preferred."""

    reason: Reason
    first: ThreeMarks
    second: ThreeMarks

    @property
    def preferred(self) -> str:
        first, second = (sum(marks_of(reply).values()) for reply in (self.first, self.second))
        return "tie" if first == second else "first" if first > second else "second"

    def scores(self) -> dict[str, float]:
        return {**_of_both(self.first, self.second), "preferred": _WORTH[self.preferred]}


Verdict = Rated | RatedByThree | Compared | ComparedByThree


def marks_of(reply: Reply) -> dict[str, float]:
    """The marks of a reply by their names: all of it but the reason."""
    return {name: float(mark) for name, mark in reply if name != "reason"}


def _of_both(first: Reply, second: Reply) -> dict[str, float]:
    slots = {"first": first, "second": second}
    return {
        f"{slot}_{name}": m for slot, reply in slots.items() for name, m in marks_of(reply).items()
    }


@dataclass(frozen=True, slots=True)
class Asked:
    """Who is asked about one candidate, and who about two."""

    single: Agent[Any]
    pair: Agent[Any]

    def about(self, item: Item) -> Agent[Any]:
        agents: Mapping[str, Agent[Any]] = {"single": self.single, "pair": self.pair}
        phase = item.tags.get("phase", "")
        if phase not in agents:
            raise UserError(
                f"item {item.id!r} is nothing to judge: its tag 'phase' must be 'single' or "
                f"'pair', not {phase!r}"
            )
        return agents[phase]

    def played_by(self, role: str) -> "Asked":
        return Asked(replace(self.single, role=role), replace(self.pair, role=role))


ROLE = "judge"


def asked_by(prompt: str, reply: type[Reply]) -> Agent[Any]:
    """A judge who is asked in the words of this prompt."""
    return Agent(ROLE, load(f"malibu/{prompt}"), reply, temperature=0.0, kind="judge")


JUDGES: Mapping[Metrics, Asked] = {
    "four": Asked(asked_by("judge_single", Rated), asked_by("judge_pair", Compared)),
    "three": Asked(
        asked_by("judge_single_three", RatedByThree), asked_by("judge_pair_three", ComparedByThree)
    ),
}


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
    metrics: Metrics = "four"

    def __post_init__(self) -> None:
        listed(self.personas)

    def agents(self) -> tuple[Agent[Any], ...]:
        judges = JUDGES[self.metrics]
        return judges.single, judges.pair, *of_two_families(judges.pair)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judges = JUDGES[self.metrics]
        if item.tags.get("phase") == OWN:
            return await own_or_other(item, ask, judges.pair, listed(self.personas)[0])
        judge = judges.about(item)
        variants = [
            (persona, wording)
            for persona in listed(self.personas)
            for wording in wordings(item, self.counterfactual)
        ]
        verdicts: Sequence[Verdict] = await side_by_side(
            *(ask(judge, material=wording.prompt, persona=persona) for persona, wording in variants)
        )
        drafts = [
            Draft(
                text=verdict.reason,
                reasoning=f"{persona}; {wording.name}",
                scores=slots_exchanged(verdict.scores()) if wording.reversed else verdict.scores(),
            )
            for (persona, wording), verdict in zip(variants, verdicts, strict=True)
        ]
        means = [mean_of(drafts, f"mean of {len(drafts)} verdicts")] if len(drafts) > 1 else []
        return Answer(drafts=(*drafts, *means), stopped="single_pass")


def listed(personas: str) -> tuple[str, ...]:
    """Each persona of a setting once; two equal ones would be one judge with two votes."""
    names = [" ".join(part.split()) for part in personas.split(";")]
    once = tuple(dict.fromkeys(part for part in names if part))
    if not once:
        raise UserError('a judge needs personas: who judges, split at ";"')
    return once


def slots_exchanged(scores: Mapping[str, float]) -> dict[str, float]:
    """The scores of a pair, said of the candidates in the other order."""
    other = {"first": "second", "second": "first"}
    sides = {name: name.partition("_") for name in scores if name != "preferred"}
    marks = {name: scores[f"{other[slot]}_{metric}"] for name, (slot, _, metric) in sides.items()}
    return {**marks, "preferred": 1.0 - scores["preferred"]}


def mean_of(drafts: Sequence[Draft], called: str) -> Draft:
    """The mean of each score; the words are all that were said, each once."""
    reasons = dict.fromkeys(draft.text for draft in drafts)
    return Draft(
        text="\n".join(reasons),
        reasoning=called,
        scores={name: fmean(draft.scores[name] for draft in drafts) for name in drafts[0].scores},
    )
