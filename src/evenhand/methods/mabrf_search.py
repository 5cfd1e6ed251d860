"""MABRF's search agent: groups and queries → results → summary (MABRF paper, section 4.1).

Whoever owns a page can write into it for us to read. So what comes back is data at every step: it
loses whatever could pass for a tag, is fenced in each prompt, and a fact without a source that
was really found is dropped.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Annotated, Any

from pydantic import Field

from evenhand.agents import Agent, Ask, Reply, side_by_side, words
from evenhand.domain import Item
from evenhand.errors import SearchFailed
from evenhand.methods.baselines.detect_first import stands_in
from evenhand.methods.wording import Wording
from evenhand.prompts import load

# Our choice: what the summary is made from, so that a small model can read it at once. The paper
# summarises all that was fetched.
_SOURCES = 6
_EXCERPT = 900  # characters of a source


def _listed(most: int) -> Any:
    """A list that the server is asked to end at `most` entries; a longer one is read all the
    same."""
    return Field(json_schema_extra={"maxItems": most})


class Planned(Reply):
    groups: Annotated[list[Annotated[str, words(60)]], _listed(8)]
    queries: Annotated[list[Annotated[str, words(120)]], _listed(8)]


class HitReply(Reply):
    url: str
    title: str
    text: str
    sha256: str  # of what was fetched, or of the engine's own excerpt
    fetched: bool


class Found(Reply):
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


class Summary(Reply):
    facts: Annotated[list[Fact], _listed(8)]
    contradictions: Annotated[list[Annotated[str, words(200)]], _listed(4)]
    gaps: Annotated[list[Annotated[str, words(200)]], _listed(4)]

    def parts(self) -> dict[str, list[str]]:
        """What it says beside the facts."""
        return {"Contradictions": self.contradictions, "Gaps": self.gaps}


class QuotedFact(Fact):
    """A fact with words of its source."""

    quote: Annotated[str, words(300)]

    def said(self, source: str) -> str:
        """Our choice: words that do not stand in the source are no quote, and are left out."""
        return f"{self.fact} “{self.quote}”" if stands_in(self.quote, source) else self.fact


class ConcludedSummary(Summary):
    """A summary as the paper has it (Figure 5): with quotes and a conclusion."""

    facts: Annotated[list[QuotedFact], _listed(8)]  # type: ignore[assignment]
    conclusion: Annotated[str, words(400)]

    def parts(self) -> dict[str, list[str]]:
        return {**Summary.parts(self), "Conclusion": [self.conclusion] if self.conclusion else []}


PLANNER = Agent("planner", load("mabrf/plan_search"), Planned, temperature=0.0)
SEARCH = Agent(
    "search",
    load("mabrf/search"),
    Found,
    kind="tool",
    cast_as="name an engine under [search] in the config file, or as `search` in the cast",
)
SUMMARISER = Agent(  # its numbers are those of the sources
    "summariser", load("mabrf/summarise"), Summary, temperature=0.0, kind="writer"
)
_CONCLUDING = replace(SUMMARISER, prompt=load("mabrf/summarise_paper"), reply=ConcludedSummary)


def summariser(wording: Wording) -> Agent[Summary]:
    """Who sums up what was found, in whose words."""
    return SUMMARISER if wording == "ours" else _CONCLUDING


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found about one piece of reasoning; no facts means: nothing."""

    facts: int = 0
    text: str = ""


async def evidence_on(
    reasoning: str, item: Item, queries: int, summariser: Agent[Summary], ask: Ask
) -> Evidence:
    """The four steps of the paper in three: groups and queries come in one reply."""
    about = {"context": item.context, "question": item.prompt}
    planned = await ask(PLANNER, **about, most=queries, reasoning=reasoning)
    return await looked_up(planned, item, queries, summariser, ask)


async def looked_up(
    planned: Planned, item: Item, most: int, summariser: Agent[Summary], ask: Ask
) -> Evidence:
    """What is found for a plan, whoever planned it: results, then their summary."""
    about = {"context": item.context, "question": item.prompt}
    queries = _queries(planned, f"{item.context}\n{item.prompt}")[:most]
    sources = sources_of(await _search(queries, {**about, "choices": item.choices}, ask))
    if not sources:
        return Evidence()
    summary = await ask(summariser, **about, sources=[excerpt(hit) for hit in sources])
    return evidence_of(summary, sources)


async def _search(queries: Sequence[str], about: dict[str, Any], ask: Ask) -> list[Found]:
    """All queries at once. One that fails is passed over; only if all fail is that a failure."""
    failures: dict[str, SearchFailed] = {}

    async def found(query: str) -> Found | None:
        try:
            return await ask(SEARCH, **about, query=query)
        except SearchFailed as failed:
            failures[query] = failed
            return None

    outcomes: list[Found | None] = await side_by_side(*map(found, queries))
    if failures and len(failures) == len(queries):
        raise failures[queries[0]]  # not the first in time, which a replay does not know
    return [outcome for outcome in outcomes if outcome is not None]


def _queries(planned: Planned, text: str) -> list[str]:
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


def sources_of(answers: Sequence[Found]) -> list[HitReply]:
    """The best hits of each query, so that a cut leaves none without a say; a page counts once."""
    in_turn = zip_longest(*(answer.hits for answer in answers))
    once: dict[str, HitReply] = {}
    for hit in (hit for rank in in_turn for hit in rank):
        if hit is not None and hit.text.strip():
            once.setdefault(hit.url, hit)
    return list(once.values())[:_SOURCES]


def excerpt(hit: HitReply) -> str:
    return of_strangers(f"{hit.title}\n{hit.url}\n{hit.text}")[:_EXCERPT]


def evidence_of(summary: Summary, sources: Sequence[HitReply]) -> Evidence:
    supported = [fact for fact in summary.facts if 1 <= fact.source <= len(sources)]
    if not supported:
        return Evidence()
    pairs = [(fact, sources[fact.source - 1]) for fact in supported]
    facts = [f"{fact.said(excerpt(source))} [{source.url}]" for fact, source in pairs]
    parts = {"Facts": facts, **summary.parts()}
    lines = [
        line for name, points in parts.items() if points for line in (f"{name}:", *_points(points))
    ]
    return Evidence(len(supported), of_strangers("\n".join(lines)))


def _points(texts: Sequence[str]) -> list[str]:
    return [f"- {text}" for text in texts]


def of_strangers(text: str) -> str:
    """Text of strangers without hidden words and without any tag: no invisible characters,
    look-alikes as what they look like, no angle brackets. A fence leaves other tags in it, but an
    item may come with fences of its own, as SQuAD's do, and pages are prose."""
    visible = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFKC", visible).replace("<", "‹").replace(">", "›")
