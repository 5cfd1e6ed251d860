"""MABRF in a run: what an item may cost is a bound (T9), and a search is played back offline."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import Cast, Limits
from evenhand.core import Failed, Item, Usage
from evenhand.core.errors import SearchFailed
from evenhand.methods import Mabrf
from evenhand.models import ModelReply, ModelRequest, Sample, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, replay_of, run
from evenhand.runs.store import RunReader
from tests.errors import assert_names
from tests.methods.mabrf_lines import found, hit, planned, rephrased, solved, summary, verdict
from tests.stage import QUESTION, Line, Stage, choice, words_of

# -- T9: a judge that is never satisfied -----------------------------------------------------------


class Greedy(ScriptedModel):
    """Always as long as it may be, always new, never satisfied; counts what it cost."""

    def __init__(self) -> None:
        super().__init__(self._say, name="greedy")
        self.spent = 0

    def _say(self, request: ModelRequest) -> ModelReply:
        assert request.max_tokens is not None
        filler = f"{self.requests} " + "a " * max(request.max_tokens - 80, 1)
        match request.schema.name if request.schema else "":
            case "reasonedchoice":
                said = solved("A", filler)
            case "verdict":
                said = verdict(10, filler)
            case "rephrased":
                said = rephrased(filler)
            case "searchqueries":
                said = planned("one", "two", "three")
            case _:
                said = summary((filler, 1))
        prompt = len(words_of(request).encode()) // 3 + 20
        self.spent += prompt + request.max_tokens
        return ModelReply(samples=(Sample(said),), usage=Usage(prompt, request.max_tokens))


def _engine(request: ModelRequest) -> ModelReply:
    query = request.messages[-1].content
    said = found(query, *(f"{query} page {n} " + "b " * 2_000 for n in range(5)))
    return ModelReply(samples=(Sample(said),), usage=Usage(0, 0))


@pytest.mark.parametrize("tokens", [300, 1_000, 3_000, 10_000, 100_000])
@pytest.mark.parametrize("search", [False, True], ids=["without search", "with search"])
async def test_a_judge_never_satisfied_spends_at_most_five_percent_over_the_budget(
    search: bool, tokens: int
) -> None:
    greedy = Greedy()
    stage = Stage({}, limits=Limits(calls=64, tokens=tokens))
    stage.cast = Cast(greedy, {"search": ScriptedModel(_engine)})
    event = await stage.end_of(Mabrf(search=search, max_iterations=10**6), QUESTION)
    print(f"search={search} {tokens}: {greedy.spent / tokens:.3f}, calls {event.calls}")
    assert isinstance(event, Failed)
    assert event.reason == "budget_spent"
    assert greedy.spent <= 1.05 * tokens
    assert event.calls <= 64
    if tokens >= 10_000:  # a bound that lets nothing through would be easy to keep
        assert greedy.spent >= 0.4 * tokens


@pytest.mark.parametrize("calls", [1, 2, 5, 17])
@pytest.mark.parametrize("search", [False, True], ids=["without search", "with search"])
async def test_a_judge_never_satisfied_is_asked_no_more_often_than_allowed(
    search: bool, calls: int
) -> None:
    greedy, engine = Greedy(), ScriptedModel(_engine)
    stage = Stage({}, limits=Limits(calls=calls, tokens=10**9))
    stage.cast = Cast(greedy, {"search": engine})
    event = await stage.end_of(Mabrf(search=search, max_iterations=10**6), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "budget_spent"
    assert event.calls == greedy.requests + engine.requests == calls


# -- replay ----------------------------------------------------------------------------------------

KINDS = ("fine", "repaired", "stubborn", "garbled", "nothing", "one-fails", "all-fail")
ITEMS = [
    replace(QUESTION, id=f"i{n}", context=f"Case {n}, {KINDS[n % 7]}: a girl and a boy.")
    for n in range(14)
]


def team_says(request: ModelRequest) -> Line:
    words = words_of(request)
    match request.schema.name if request.schema else "":
        case "reasonedchoice":
            return solved("A", "1. The girl must be.")
        case "verdict":
            return _judged(words)
        case "rephrased" if "stubborn" in words or "garbled" in words:
            return rephrased(f"1. Another {hashlib.sha256(words.encode()).hexdigest()[:4]}.")
        case "rephrased":
            return rephrased("1. Repaired.")
        case "searchqueries":
            return planned("girl maths", "girl exams", "girl school")
        case "factsummary":
            return summary(("Marks are alike.", 1), ("Unfounded.", 99))
    return choice("C")


def _judged(words: str) -> str:
    if "garbled" in words and "1. Another" in words:
        return "no JSON"
    return verdict(1 if "fine" in words or "1. Repaired." in words else 6)


def _searched(request: ModelRequest) -> Line:
    system, user = request.messages
    if "all-fail" in system.content or ("one-fails" in system.content and "exams" in user.content):
        return SearchFailed(f"HTTP 503 for {user.content}")
    if "nothing" in system.content:
        return found(user.content)
    told = json.loads(found(user.content, "Marks 😀\u2028 are alike."))
    told["hits"].append(hit("https://example.org/same", "Shared by all queries."))
    return json.dumps(told)


def team() -> Cast:
    return Cast(
        ScriptedModel(team_says, name="team"),
        {"search": ScriptedModel(_searched, name="engine@1", seconds=0.001)},
    )


async def ran(
    folder: Path, cast: Cast, items: list[Item] = ITEMS, concurrency: int = 1
) -> RunReader:
    planned_run = RunPlan(
        method=Mabrf(search=True, max_iterations=3),
        cast=cast,
        source=ItemList(items),
        seed=3,
        concurrency=concurrency,
    )
    await run(planned_run, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


@pytest.mark.parametrize("kind", ["results", "turns"])
async def test_a_searched_run_is_played_back_to_the_byte_without_an_engine(
    tmp_path: Path, kind: str
) -> None:
    await ran(tmp_path / "run", team())
    await ran(tmp_path / "again", replay_of(tmp_path / "run"))
    written, again = (
        [file.read_bytes() for file in sorted((tmp_path / name / kind).glob("*.parquet"))]
        for name in ("run", "again")
    )
    assert len(written) == 1
    assert again == written


async def test_items_at_work_at_once_are_played_back_to_the_same_rows(tmp_path: Path) -> None:
    one = await ran(tmp_path / "run", team(), concurrency=8)
    two = await ran(tmp_path / "again", replay_of(tmp_path / "run"), concurrency=3)
    assert two.results().collect().equals(one.results().collect())
    assert two.turns().collect().equals(one.turns().collect())


async def test_every_search_is_on_the_tape_with_its_time_engine_address_and_hash(
    tmp_path: Path,
) -> None:
    reader = await ran(tmp_path / "run", team(), ITEMS[1:2])
    turns = reader.turns().filter(pl.col("role") == "search").collect()
    assert turns["model"].to_list() == ["engine@1"] * 3
    assert turns["started_us"].min() > 0  # type: ignore[operator]
    for (text,) in turns["texts"].to_list():
        first, shared = json.loads(text)["hits"]
        assert first["url"].startswith("https://example.org/girl-")
        assert (len(first["sha256"]), shared["url"]) == (64, "https://example.org/same")


async def test_the_run_ends_its_items_in_all_the_ways_there_are(tmp_path: Path) -> None:
    """Else the replay above would show less than it seems to."""
    results = (await ran(tmp_path / "run", team(), ITEMS[:7])).results().collect()
    assert results["stopped"].to_list() == [
        *("accepted", "accepted", "max_iterations", "judge_failed", "accepted", "accepted"),
        None,
    ]
    assert results["reason"].to_list()[-1] == "search_failed"
    assert_names(results["message"].to_list()[-1], "HTTP 503", "girl maths")
    evidence = [
        {score["name"]: score["value"] for score in row}.get("evidence")
        for row in results["scores_after"].to_list()
    ]
    assert evidence == [None, 1.0, 0.0, 0.0, 0.0, 1.0, None]
