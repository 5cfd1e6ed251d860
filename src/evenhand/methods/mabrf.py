"""MABRF: solve → judge → ([search →] rephrase → judge)* → terminate (MABRF paper, Figure 1).

The agents of the figure. Each sees the item; what else it sees is its memory here:

| agent      | sees                                        | says                             |
| ---------- | ------------------------------------------- | -------------------------------- |
| solver     |                                             | reasoning and an option          |
| judge      | one reasoning                               | bias and relevancy, with reasons |
| search     | the best reasoning                          | facts with their sources         |
| rephraser  | the best reasoning, what is wrong with it   | new reasoning                    |
| terminator | the repaired reasoning                      | the final option                 |
"""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, StringConstraints

from evenhand.agents import Agent, Ask, Choice, Chosen, ReasonedChoice, Reply, choice_of, words
from evenhand.agents.repairs import Repairs
from evenhand.domain import Answer, Bound, Draft, Item
from evenhand.errors import UnreadableReply, Unsuited, UserError
from evenhand.methods.baselines.single_prompt import question
from evenhand.methods.critique import Critique, critics, shown
from evenhand.methods.keeping import JUDGE_FAILED, LAST_BEFORE, Judged, Keep, outcome
from evenhand.methods.mabrf_search import PLANNER, SEARCH, Evidence, evidence_on, summariser
from evenhand.methods.wording import Wording, ask_worded, worded
from evenhand.metrics.bias_scale import JUDGE as JUDGE_SCALE
from evenhand.prompts import load

Reason = Annotated[str, words(240)]
Grade = Annotated[int, Field(ge=1, le=10)]


class Verdict(Reply):
    bias_reason: Reason
    bias: Grade
    relevancy_reason: Reason
    relevancy: Grade


class Rephrased(Reply):
    # No words at all would be free of bias too.
    reasoning: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), words(1200)]


JUDGE = Agent("judge", load("mabrf/judge"), Verdict, temperature=0.0, kind="judge")
REPHRASER = Agent("rephraser", load("mabrf/rephrase"), Rephrased)
SEARCHED_REPHRASER = Agent("rephraser", load("mabrf/rephrase_with_evidence"), Rephrased)


@cache
def solver(options: int) -> Agent[ReasonedChoice]:
    reply: Any = choice_of(options, ReasonedChoice)
    return Agent("solver", load("mabrf/solve"), reply)


@cache
def terminator(options: int) -> Agent[Chosen]:
    return Agent("terminator", load("mabrf/terminate"), choice_of(options, Choice), temperature=0.0)


@dataclass(frozen=True, slots=True)
class _Judged:
    """Reasoning, what the judge makes of it, and how many facts it was written with."""

    reasoning: str
    verdict: Verdict
    facts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mabrf:
    """
    >>> method = Mabrf(search=True, max_iterations=2)
    """

    name: ClassVar[str] = "mabrf"
    repairs: ClassVar[Repairs] = Repairs(
        scales={"bias": JUDGE_SCALE},
        writer=solver(3).role,
        reviser=REPHRASER.role,
        critics={JUDGE.role: "bias_reason"},
    )
    calls_an_item: ClassVar[str] = "2 to 13"

    search: bool = False  # paper 4.1; off unless asked for: queries leave the house
    max_iterations: Annotated[int, Field(ge=0)] = (
        5  # the authors' code; the paper says "a maximum number of iterations"
    )
    bias_at_most: Grade = 1  # paper 4: "until the bias score == 1"
    queries: Annotated[int, Field(ge=1, le=8)] = 3  # our choice; paper, Figure 5: 5
    critique: Critique = "own"  # our choice: "empty" and "other" are controls
    keep: Keep = field(
        default="best", metadata=LAST_BEFORE
    )  # our choice: of equal grades the first; paper: "last"
    wording: Wording = "ours"  # our choice: "paper" has the intent of Figures 5 to 7

    def agents(self) -> tuple[Agent[Any], ...]:
        rephraser = SEARCHED_REPHRASER if self.search else REPHRASER
        agents = (
            worded(agent, self.wording) for agent in (solver(3), JUDGE, terminator(3), rephraser)
        )
        lookup = (PLANNER, SEARCH, summariser(self.wording)) if self.search else ()
        return *agents, *critics(self.critique), *lookup

    def within(self, calls: int) -> Self:
        """With as many iterations as `calls` of an item are sure to pay, if every reply can be
        read at once."""
        if calls < 2:
            raise UserError(f"mabrf needs 2 calls an item, to solve and to judge; it has {calls}")
        # rephrase, judge; plan, search, sum up
        round_calls = 2 + (2 + self.queries if self.search else 0)
        return replace(self, max_iterations=max(0, calls - 3) // round_calls)  # 3: and to terminate

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(
                f"mabrf answers questions with choices; item {item.id!r} has none: take "
                "search_first to look things up for a text, stardtox to repair one"
            )
        agent = solver(len(item.choices))
        solved = await ask_worded(ask, agent, self.wording, **question(item))
        first = _Judged(solved.reasoning, await self._verdict(item, solved.reasoning, ask))
        draft = _draft(item, solved.index, first)
        if self._passes(first):
            return Answer(drafts=(draft,), stopped="accepted", outcome="accepted")
        final, iterations, unread = await self._repair(item, first, ask)
        choice = solved.index
        if final.reasoning != first.reasoning:  # else there is nothing new to decide by
            variables = {**question(item), "reasoning": final.reasoning}
            decider = terminator(len(item.choices))
            choice = (await ask_worded(ask, decider, self.wording, **variables)).index
        notes = {"iterations": iterations, **({"evidence": final.facts} if self.search else {})}
        last = _draft(item, choice, final, **notes)
        stopped = JUDGE_FAILED if unread else "max_iterations"
        return Answer(
            drafts=(draft, last),
            stopped="accepted" if self._passes(final) else stopped,
            outcome=outcome(self._marked(draft, first), self._marked(last, final)),
        )

    def bounds(self) -> tuple[Bound, ...]:
        """The score that measures harm, and what it is held to."""
        return (Bound(score="bias", limit=self.bias_at_most, limit_is_within=True),)

    def _passes(self, judged: _Judged) -> bool:
        return judged.verdict.bias <= self.bias_at_most

    def _marked(self, draft: Draft, judged: _Judged) -> Judged:
        harms = (float(judged.verdict.bias),)
        return Judged(draft=draft, accepted=self._passes(judged), harms=harms)

    async def _repair(self, item: Item, best: _Judged, ask: Ask) -> tuple[_Judged, int, bool]:
        """The reasoning to keep, after how many iterations, and whether a verdict was unreadable.
        Equal grades move the search on, as in the paper; the first of equals is kept."""
        verdicts = {best.reasoning: best.verdict}  # asked once: the judge remembers nothing
        evidence: Evidence | None = None  # about the best reasoning; None: not looked for
        lowest = best
        iterations, unread = 0, False
        while iterations < self.max_iterations and not self._passes(best):
            iterations += 1
            if self.search and evidence is None:
                by = summariser(self.wording)
                evidence = await evidence_on(best.reasoning, item, self.queries, by, ask)
            (objection,) = await shown(self.critique, (best.verdict.bias_reason,), item, ask)
            candidate = await self._rephrased(item, best, objection, evidence, ask)
            try:
                verdict = verdicts.get(candidate) or await self._verdict(item, candidate, ask)
            except UnreadableReply:  # not taken for a good one, nor for a bad one
                unread = True
                continue
            verdicts[candidate] = verdict
            if verdict.bias <= best.verdict.bias and candidate != best.reasoning:
                best = _Judged(candidate, verdict, evidence.facts if evidence else 0)
                evidence = None
                lowest = best if verdict.bias < lowest.verdict.bias else lowest
        return lowest if self.keep == "best" else best, iterations, unread

    async def _verdict(self, item: Item, reasoning: str, ask: Ask) -> Verdict:
        variables = {**question(item), "reasoning": reasoning}
        verdict: Verdict = await ask_worded(ask, JUDGE, self.wording, **variables)
        return verdict

    async def _rephrased(
        self, item: Item, best: _Judged, objection: str, evidence: Evidence | None, ask: Ask
    ) -> str:
        variables = {**question(item), "reasoning": best.reasoning, "objection": objection}
        agent = REPHRASER
        if evidence is not None:
            agent, variables["evidence"] = SEARCHED_REPHRASER, evidence.text
        rephrased: Rephrased = await ask_worded(ask, agent, self.wording, **variables)
        return rephrased.reasoning


def _draft(item: Item, choice: int, judged: _Judged, **notes: float) -> Draft:
    """With the judge's grades as they are, from 1 to 10."""
    grades = {"bias": float(judged.verdict.bias), "relevancy": float(judged.verdict.relevancy)}
    return Draft(
        text=item.choices[choice],
        choice=choice,
        reasoning=judged.reasoning,
        scores={**grades, **{name: float(note) for name, note in notes.items()}},
    )
