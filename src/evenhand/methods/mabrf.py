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

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints

from evenhand.agents import (
    Agent,
    Ask,
    Choice,
    Digit,
    OptionReply,
    Read,
    ReasonedChoice,
    Reply,
    choice_of,
    one_token,
    side_by_side,
    words,
)
from evenhand.agents.agent import RepairRoles
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item, ScoreLimit
from evenhand.core.errors import SearchFailed, UnreadableReply, Unsuited, UserError
from evenhand.core.items import JUDGE as JUDGE_SCALE
from evenhand.methods.baselines.detect_first import stands_in
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    choice_agent,
    draft_by,
    question,
    text_agent,
)
from evenhand.methods.shared_settings import (
    JUDGE_FAILED,
    LAST_BEFORE,
    Critique,
    JudgedDraft,
    Keep,
    Wording,
    ask_worded,
    critics,
    outcome,
    shown,
    worded,
)

# Our choice: what the summary is made from, so that a small model can read it at once. The paper
# summarises all that was fetched.
_SOURCES = 6
_EXCERPT = 900  # characters of a source


def _listed(most: int) -> Any:
    """A list that the server is asked to end at `most` entries; a longer one is read all the
    same."""
    return Field(json_schema_extra={"maxItems": most})


class SearchQueries(Reply):
    groups: Annotated[list[Annotated[str, words(60)]], _listed(8)]
    queries: Annotated[list[Annotated[str, words(120)]], _listed(8)]


class HitReply(Reply):
    url: str
    title: str
    text: str
    sha256: str  # of what was fetched, or of the engine's own excerpt
    fetched: bool


class SearchReply(Reply):
    """What an engine gives for one query. No hit means that it found nothing."""

    query: str
    engine: str
    hits: list[HitReply]


class Fact(Reply):
    fact: Annotated[str, words(300)]
    source: int

    def said(self, source: str) -> str:
        """The fact as the rephraser reads it, where this is its source."""
        del source
        return self.fact


class FactSummary(Reply):
    facts: Annotated[list[Fact], _listed(8)]
    contradictions: Annotated[list[Annotated[str, words(200)]], _listed(4)]
    gaps: Annotated[list[Annotated[str, words(200)]], _listed(4)]

    def parts(self) -> dict[str, list[str]]:
        """Give the parts other than the facts."""
        return {"Contradictions": self.contradictions, "Gaps": self.gaps}


class QuotedFact(Fact):
    """A fact with words of its source."""

    quote: Annotated[str, words(300)]

    def said(self, source: str) -> str:
        """Our choice: words that are not in the source are not a quote, and are left out."""
        return f"{self.fact} “{self.quote}”" if stands_in(self.quote, source) else self.fact


class ConcludedSummary(FactSummary):
    """A summary as the paper has it (Figure 5): with quotes and a conclusion."""

    facts: Annotated[list[QuotedFact], _listed(8)]  # type: ignore[assignment]
    conclusion: Annotated[str, words(400)]

    def parts(self) -> dict[str, list[str]]:
        return {
            **FactSummary.parts(self),
            "Conclusion": [self.conclusion] if self.conclusion else [],
        }


PLANNER = Agent("planner", load("mabrf/plan_search"), SearchQueries, temperature=0.0)
SEARCH = Agent(
    "search",
    load("mabrf/search"),
    SearchReply,
    kind="tool",
    cast_as="Name an engine under [search] in the config file, or `search` of the Cast in Python.",
)
SUMMARISER = Agent(  # its numbers are those of the sources
    "summariser", load("mabrf/summarise"), FactSummary, temperature=0.0, kind="writer"
)
_CONCLUDING = replace(SUMMARISER, prompt=load("mabrf/summarise_paper"), reply=ConcludedSummary)


def summariser(wording: Wording) -> Agent[FactSummary]:
    """Who sums up what was found, in whose words."""
    return SUMMARISER if wording == "ours" else _CONCLUDING


@dataclass(frozen=True, slots=True)
class ReasoningEvidence:
    """What was found about one piece of reasoning; no facts means: nothing."""

    facts: int = 0
    text: str = ""


async def evidence_on(
    reasoning: str, item: Item, queries: int, summariser: Agent[FactSummary], ask: Ask
) -> ReasoningEvidence:
    """Search for facts about the groups in a reasoning, and summarize them (MABRF paper, 4.1).

    These are the four steps of the paper in three, since groups and queries come in one reply.
    Anyone who owns a page can write into it for the model to read. So what comes back is data at
    every step: it loses whatever could pass for a tag, is fenced in each prompt, and a fact without
    a source that was really found is dropped.

    Args:
        reasoning: The reasoning to check.
        item: The item, whose context and question the planner sees.
        queries: The most search queries to send.
        summariser: The agent that summarizes the results.
        ask: Asks an agent.

    Returns:
        The evidence; empty if nothing was found.
    """
    about = {"context": item.context, "question": item.prompt}
    planned = await ask(PLANNER, **about, most=queries, reasoning=reasoning)
    return await looked_up(planned, item, queries, summariser, ask)


async def looked_up(
    planned: SearchQueries, item: Item, most: int, summariser: Agent[FactSummary], ask: Ask
) -> ReasoningEvidence:
    """Run the searches of a plan and summarize the results.

    Args:
        planned: The planned queries.
        item: The item; queries about a group that its texts do not name are dropped.
        most: The most queries to send.
        summariser: The agent that summarizes the results.
        ask: Asks an agent.

    Returns:
        The evidence; empty if nothing was found.
    """
    about = {"context": item.context, "question": item.prompt}
    queries = _queries(planned, f"{item.context}\n{item.prompt}")[:most]
    sources = sources_of(await _search(queries, {**about, "choices": item.choices}, ask))
    if not sources:
        return ReasoningEvidence()
    summary = await ask(summariser, **about, sources=[excerpt(hit) for hit in sources])
    return evidence_of(summary, sources)


async def _search(queries: Sequence[str], about: dict[str, Any], ask: Ask) -> list[SearchReply]:
    """All queries at once. One that fails is passed over; only if all fail is that a failure."""
    failures: dict[str, SearchFailed] = {}

    async def found(query: str) -> SearchReply | None:
        try:
            return await ask(SEARCH, **about, query=query)
        except SearchFailed as failed:
            failures[query] = failed
            return None

    outcomes: list[SearchReply | None] = await side_by_side(*map(found, queries))
    if failures and len(failures) == len(queries):
        raise failures[queries[0]]  # not the first in time, which a replay does not know
    return [outcome for outcome in outcomes if outcome is not None]


def _queries(planned: SearchQueries, text: str) -> list[str]:
    """The queries, each once, without those about a group that the text does not name: to search
    for what a model reads into a text would bring in the very bias that is to go out."""
    text = text.casefold()
    groups = (group.strip().casefold() for group in planned.groups)
    invented = [group for group in groups if group not in text]
    once: dict[str, str] = {}
    for query in (" ".join(query.split()) for query in planned.queries):
        if query and not any(group in query.casefold() for group in invented):
            once.setdefault(query.casefold(), query)
    return list(once.values())


def sources_of(answers: Sequence[SearchReply]) -> list[HitReply]:
    """The best hits of each query, so that a cut leaves none without a say; a page counts once."""
    in_turn = zip_longest(*(answer.hits for answer in answers))
    once: dict[str, HitReply] = {}
    for hit in (hit for rank in in_turn for hit in rank):
        if hit is not None and hit.text.strip():
            once.setdefault(hit.url, hit)
    return list(once.values())[:_SOURCES]


def excerpt(hit: HitReply) -> str:
    return of_strangers(f"{hit.title}\n{hit.url}\n{hit.text}")[:_EXCERPT]


def evidence_of(summary: FactSummary, sources: Sequence[HitReply]) -> ReasoningEvidence:
    supported = [fact for fact in summary.facts if 1 <= fact.source <= len(sources)]
    if not supported:
        return ReasoningEvidence()
    pairs = [(fact, sources[fact.source - 1]) for fact in supported]
    facts = [f"{fact.said(excerpt(source))} [{source.url}]" for fact, source in pairs]
    parts = {"Facts": facts, **summary.parts()}
    lines: list[str] = []
    for name, points in parts.items():
        lines += [f"{name}:", *(f"- {point}" for point in points)] if points else []
    return ReasoningEvidence(len(supported), of_strangers("\n".join(lines)))


def of_strangers(text: str) -> str:
    """Text of strangers without hidden words and without any tag: no invisible characters,
    look-alikes as what they look like, no angle brackets. A fence leaves other tags in it, but an
    item may come with fences of its own, as SQuAD's do, and pages are prose."""
    visible = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFKC", visible).replace("<", "‹").replace(">", "›")


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
GRADE = one_token(JUDGE.role, load("mabrf/judge_digit"), Digit, "judge")
_NO_REASON = "a step seems to rest on what is assumed of a group, and not on the context"
REPHRASER = Agent("rephraser", load("mabrf/rephrase"), Rephrased)
SEARCHED_REPHRASER = Agent("rephraser", load("mabrf/rephrase_with_evidence"), Rephrased)


@cache
def solver(options: int) -> Agent[ReasonedChoice]:
    reply: Any = choice_of(options, ReasonedChoice)
    return Agent("solver", load("mabrf/solve"), reply)


@cache
def terminator(options: int) -> Agent[OptionReply]:
    return Agent("terminator", load("mabrf/terminate"), choice_of(options, Choice), temperature=0.0)


@dataclass(frozen=True, slots=True)
class Grades:
    """The judge's two grades of one reasoning, from 1 to 10."""

    bias: float
    relevancy: float
    objection: str  # what the rephraser reads


async def grade_of(
    trait: Literal["bias", "relevancy"],
    item: Item,
    reasoning: str,
    ask: Ask,
    wording: Wording = "ours",
) -> float:
    """Ask the judge for one digit, and read the expected grade off its log-probabilities.

    Args:
        trait: What is graded.
        item: The question that the reasoning is about.
        reasoning: The reasoning to judge.
        ask: Asks an agent.
        wording: Whose prompt the judge gets.

    Returns:
        The grade, from 1 to 10.
    """
    variables = {**question(item), "reasoning": reasoning, "trait": trait}
    digit: Digit = await ask_worded(ask, GRADE, wording, **variables)
    return digit.on(JUDGE_SCALE.least, JUDGE_SCALE.most)


@dataclass(frozen=True, slots=True)
class _JudgedReasoning:
    """Reasoning, what the judge makes of it, and how many facts it was written with."""

    reasoning: str
    verdict: Grades
    facts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mabrf:
    """MABRF: solve → judge → ([search →] rephrase → judge)* → terminate (MABRF paper, Figure 1).

    >>> method = Mabrf(search=True, max_iterations=2)
    """

    name: ClassVar[str] = "mabrf"
    repairs: ClassVar[RepairRoles] = RepairRoles(
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
    terminate: Literal["changed", "always"] = field(
        default="changed", metadata={"left_out": "changed"}
    )  # our choice: only changed reasoning is decided by again; paper 4: "always"
    read: Read = field(default="json", metadata={"left_out": "json"})  # our choice; of the judge

    def agents(self) -> tuple[Agent[Any], ...]:
        rephraser = SEARCHED_REPHRASER if self.search else REPHRASER
        judge = JUDGE if self.read == "json" else GRADE
        agents = (
            worded(agent, self.wording) for agent in (solver(3), judge, terminator(3), rephraser)
        )
        lookup = (PLANNER, SEARCH, summariser(self.wording)) if self.search else ()
        return *agents, *critics(self.critique), *lookup

    def within(self, calls: int) -> Self:
        """With as many iterations as `calls` of an item are sure to pay, if every reply can be
        read at once."""
        verdict_calls = 1 if self.read == "json" else 2  # a digit for each grade
        least = 1 + verdict_calls + (self.terminate == "always")
        if calls < least:
            raise UserError(
                f"mabrf with these settings needs {least} calls per item, and the limit is "
                f"{calls}. Raise `calls` under [limits] in the config."
            )
        # rephrase, judge; plan, search, sum up
        round_calls = 1 + verdict_calls + (2 + self.queries if self.search else 0)
        left = calls - (1 + verdict_calls + 1)  # to solve, to judge, and to terminate
        return replace(self, max_iterations=max(0, left) // round_calls)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(
                f"mabrf answers questions with choices; item {item.id!r} has none: take "
                "search_first to look things up for a text, stardtox to repair one"
            )
        agent = solver(len(item.choices))
        solved = await ask_worded(ask, agent, self.wording, **question(item))
        first = _JudgedReasoning(solved.reasoning, await self._verdict(item, solved.reasoning, ask))
        draft = _draft(item, solved.index, first)
        if self._passes(first) and self.terminate == "changed":
            return Answer(drafts=(draft,), stopped="accepted", outcome="accepted")
        final, iterations, unread = await self._repair(item, first, ask)
        choice = solved.index
        if self.terminate == "always" or final.reasoning != first.reasoning:
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

    def bounds(self) -> tuple[ScoreLimit, ...]:
        """The score that measures harm, and what it is held to. An expected grade is hardly ever
        whole: the nearest whole one counts."""
        by_json = self.read == "json"
        limit = self.bias_at_most if by_json else self.bias_at_most + 0.5
        return (ScoreLimit(score="bias", limit=limit, limit_is_within=by_json),)

    def _passes(self, judged: _JudgedReasoning) -> bool:
        (bound,) = self.bounds()
        return bound.within(judged.verdict.bias)

    def _marked(self, draft: Draft, judged: _JudgedReasoning) -> JudgedDraft:
        harms = (judged.verdict.bias,)
        return JudgedDraft(draft=draft, accepted=self._passes(judged), harms=harms)

    async def _repair(
        self, item: Item, best: _JudgedReasoning, ask: Ask
    ) -> tuple[_JudgedReasoning, int, bool]:
        """The reasoning to keep, after how many iterations, and whether a verdict was unreadable.
        Equal grades move the search on, as in the paper; the first of equals is kept."""
        verdicts = {best.reasoning: best.verdict}  # asked once: the judge remembers nothing
        evidence: ReasoningEvidence | None = None  # about the best reasoning; None: not looked for
        lowest = best
        iterations, unread = 0, False
        while iterations < self.max_iterations and not self._passes(best):
            iterations += 1
            if self.search and evidence is None:
                by = summariser(self.wording)
                evidence = await evidence_on(best.reasoning, item, self.queries, by, ask)
            (objection,) = await shown(self.critique, (best.verdict.objection,), item, ask)
            candidate = await self._rephrased(item, best, objection, evidence, ask)
            try:
                verdict = verdicts.get(candidate) or await self._verdict(item, candidate, ask)
            except UnreadableReply:  # not taken for a good one, nor for a bad one
                unread = True
                continue
            verdicts[candidate] = verdict
            if verdict.bias <= best.verdict.bias and candidate != best.reasoning:
                best = _JudgedReasoning(candidate, verdict, evidence.facts if evidence else 0)
                evidence = None
                lowest = best if verdict.bias < lowest.verdict.bias else lowest
        return lowest if self.keep == "best" else best, iterations, unread

    async def _verdict(self, item: Item, reasoning: str, ask: Ask) -> Grades:
        if self.read == "logprob":
            bias, relevancy = await side_by_side(
                grade_of("bias", item, reasoning, ask, self.wording),
                grade_of("relevancy", item, reasoning, ask, self.wording),
            )
            return Grades(bias, relevancy, _NO_REASON)
        variables = {**question(item), "reasoning": reasoning}
        verdict: Verdict = await ask_worded(ask, JUDGE, self.wording, **variables)
        return Grades(float(verdict.bias), float(verdict.relevancy), verdict.bias_reason)

    async def _rephrased(
        self,
        item: Item,
        best: _JudgedReasoning,
        objection: str,
        evidence: ReasoningEvidence | None,
        ask: Ask,
    ) -> str:
        variables = {**question(item), "reasoning": best.reasoning, "objection": objection}
        agent = REPHRASER
        if evidence is not None:
            agent, variables["evidence"] = SEARCHED_REPHRASER, evidence.text
        rephrased: Rephrased = await ask_worded(ask, agent, self.wording, **variables)
        return rephrased.reasoning


def _draft(item: Item, choice: int, judged: _JudgedReasoning, **notes: float) -> Draft:
    """With the judge's grades as they are, from 1 to 10."""
    grades = {"bias": judged.verdict.bias, "relevancy": judged.verdict.relevancy}
    return Draft(
        text=item.choices[choice],
        choice=choice,
        reasoning=judged.reasoning,
        scores={**grades, **{name: float(note) for name, note in notes.items()}},
    )


# MABRF's are for reasoning about groups of people; these are for any question.
LOOKUP_PLANNER = Agent("planner", load("baselines/plan_lookup"), SearchQueries, temperature=0.0)
LOOKUP_SUMMARISER = replace(SUMMARISER, prompt=load("baselines/sum_up_lookup"))
_LOOKUP_TEXT = load("baselines/looked_up_text")
_LOOKUP_CHOICE = load("baselines/looked_up_choice")
_MOST_QUERIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFirst:
    """Look it up, then answer: the plain task with what a search found (after MABRF paper, RQ4).

    Queries, a search, a summary, an answer. If every query fails, so does the item. The paper's two
    arms have different prompts. Here the answer is asked for in the words of `default`, and what
    was found stands before them: the evidence alone tells the two apart. Where nothing is found,
    the request is that of `default`."""

    name: ClassVar[str] = "search_first"
    calls_an_item: ClassVar[str] = "2 to 6"

    queries: Annotated[int, Field(ge=1, le=_MOST_QUERIES)] = 3  # our choice, as in mabrf

    def agents(self) -> tuple[Agent[Any], ...]:
        answers = [text_agent(prompt) for prompt in (PLAIN_TEXT, _LOOKUP_TEXT)]
        choices = [choice_agent(prompt, 3) for prompt in (PLAIN_CHOICE, _LOOKUP_CHOICE)]
        return LOOKUP_PLANNER, SEARCH, LOOKUP_SUMMARISER, *answers, *choices

    def within(self, calls: int) -> Self:
        """One call to plan, one a query, one to sum up, one to answer."""
        if calls < 4:
            raise UserError(
                f"{self.name} needs 4 calls per item, to plan, search, summarize and answer, and "
                f"the limit is {calls}. Raise `calls` under [limits] in the config."
            )
        return replace(self, queries=min(calls - 3, _MOST_QUERIES))

    async def answer(self, item: Item, ask: Ask) -> Answer:
        planned = await ask(LOOKUP_PLANNER, **question(item), most=self.queries)
        evidence = await looked_up(planned, item, self.queries, LOOKUP_SUMMARISER, ask)
        if evidence.facts:
            draft = await draft_by(item, ask, _LOOKUP_TEXT, _LOOKUP_CHOICE, evidence=evidence.text)
        else:
            draft = await draft_by(item, ask, PLAIN_TEXT, PLAIN_CHOICE)
        return Answer(
            drafts=(replace(draft, scores={"evidence": float(evidence.facts)}),),
            stopped="single_pass" if evidence.facts else "no_evidence",
        )
