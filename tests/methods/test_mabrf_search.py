"""MABRF with its search agent, step by step (paper, Figure 1, right side, and section 4.1)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from evenhand.core import Answered, Failed
from evenhand.core.errors import ModelBusy, SearchFailed
from evenhand.methods import Mabrf
from evenhand.methods.mabrf import of_strangers
from evenhand.models import ModelReply, ModelRequest, ScriptedModel
from tests.errors import assert_names
from tests.methods.mabrf_lines import found, planned, rephrased, solved, summary, verdict
from tests.stage import QUESTION, Line, Stage, choice

SOLVER, JUDGE, REPHRASER, TERMINATOR = "solver", "judge", "rephraser", "terminator"
PLANNER, SEARCH, SUMMARISER = "planner", "search", "summariser"
BIASED = "1. The girl must be bad at maths."
FACT = "Marks are alike."
METHOD = Mabrf(search=True)
NOTHING = found("a query")


def stage_with(search: list[Line], **lines: list[Line]) -> Stage:
    """One iteration: biased reasoning, a search, a repair that passes."""
    usual: dict[str, list[Line]] = {
        SOLVER: [solved("A", BIASED)],
        JUDGE: [verdict(7), verdict(1)],
        PLANNER: [planned("girl maths marks", "girl exams", "girl school")],
        SEARCH: search,
        SUMMARISER: [summary((FACT, 1))],
        REPHRASER: [rephrased("1. No marks are given.")],
        TERMINATOR: [choice("C")],
    }
    return Stage({**usual, **lines})


# -- the paths of the figure -------------------------------------------------------------------


async def test_reasoning_that_passes_at_once_is_never_searched_for() -> None:
    stage = Stage({SOLVER: [solved("C")], JUDGE: [verdict(1)]})
    answer = await stage.answer(METHOD, QUESTION)
    assert (stage.order, answer.stopped) == ([SOLVER, JUDGE], "accepted")


async def test_groups_and_queries_then_results_then_a_summary_then_the_repair() -> None:
    texts = ("Of 4,000 pupils, marks were alike.", "Exams differ.", "Schools differ.")
    pages: list[Line] = [found(f"q{n}", text) for n, text in enumerate(texts)]
    facts = summary(
        ("Marks were alike.", 1),
        ("Exams differ.", 2),
        contradictions=("One says less.",),
        gaps=("No figures of this exam.",),
    )
    stage = stage_with(pages, summariser=[facts])
    answer = await stage.answer(METHOD, QUESTION)
    assert stage.order == [
        *(SOLVER, JUDGE, PLANNER, SEARCH, SEARCH, SEARCH),
        *(SUMMARISER, REPHRASER, JUDGE, TERMINATOR),
    ]
    assert BIASED in stage.asked_of(PLANNER)[0]
    sources = stage.asked_of(SUMMARISER)[0]
    for number, text in enumerate(texts):
        page = f"A study\nhttps://example.org/q{number}/0\n{text}"
        assert f"Source {number + 1}:\n<source>\n{page}\n</source>" in sources
    evidence = (
        "<evidence>\nFacts:\n"
        "- Marks were alike. [https://example.org/q0/0]\n"
        "- Exams differ. [https://example.org/q1/0]\n"
        "Contradictions:\n- One says less.\nGaps:\n- No figures of this exam.\n</evidence>"
    )
    assert evidence in stage.asked_of(REPHRASER)[0]
    assert evidence not in stage.asked_of(JUDGE)[1]
    assert answer.drafts[-1].scores == {
        "bias": 1.0,
        "relevancy": 8.0,
        "iterations": 1.0,
        "evidence": 2.0,
    }


async def test_the_engine_is_given_the_query_and_beside_it_the_text_whose_names_must_stay() -> None:
    stage = stage_with([NOTHING] * 3)
    await stage.answer(METHOD, QUESTION)
    (_, request), *_ = (said for said in stage.asked if said[0] == SEARCH)
    system, user = request.messages
    assert (system.role, user.role) == ("system", "user")
    options = "A. The girl\nB. The boy\nC. Cannot be known"
    assert system.content == f"{QUESTION.context}\n\n{QUESTION.prompt}\n{options}"
    assert user.content == "girl maths marks"


async def test_a_search_that_finds_nothing_is_not_summed_up_and_the_rephraser_is_told() -> None:
    stage = stage_with([NOTHING] * 3, summariser=[])
    answer = await stage.answer(METHOD, QUESTION)
    assert SUMMARISER not in stage.order
    assert_names(stage.asked_of(REPHRASER)[0], "no evidence.")
    assert "<evidence>" not in stage.asked_of(REPHRASER)[0]
    assert answer.drafts[-1].scores["evidence"] == 0.0
    assert answer.stopped == "accepted"


async def test_a_plan_without_queries_searches_for_nothing() -> None:
    stage = stage_with([], planner=[planned()], summariser=[])
    await stage.answer(METHOD, QUESTION)
    assert stage.order == [SOLVER, JUDGE, PLANNER, REPHRASER, JUDGE, TERMINATOR]
    assert_names(stage.asked_of(REPHRASER)[0], "no evidence.")


async def test_a_query_that_fails_is_passed_over() -> None:
    pages: list[Line] = [found("q0", "alike"), SearchFailed("HTTP 503"), NOTHING]
    stage = stage_with(pages)
    event = await stage.end_of(METHOD, QUESTION)
    assert isinstance(event, Answered)
    assert event.answer.drafts[-1].scores["evidence"] == 1.0
    assert [turn.error for turn in stage.turns if turn.role == SEARCH] == [
        None,
        "search_failed",
        None,
    ]


async def test_if_every_query_fails_the_item_fails_and_it_is_not_taken_for_nothing_found() -> None:
    stage = stage_with([SearchFailed("HTTP 503"), *[SearchFailed("late")] * 2])
    event = await stage.end_of(METHOD, QUESTION)
    assert isinstance(event, Failed)
    assert (event.reason, event.message) == ("search_failed", "HTTP 503")
    assert event.calls == 6  # all three queries were asked


async def test_the_failure_that_is_told_is_that_of_the_first_query_whichever_came_first() -> None:
    """A replay does not know which did."""

    class Slower(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            if "first" in request.messages[-1].content:
                await asyncio.sleep(0.02)
            raise SearchFailed(request.messages[-1].content)

    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(7)],
            PLANNER: [planned("the first", "the second")],
        },
        players={SEARCH: Slower(lambda _: "")},
    )
    event = await stage.end_of(METHOD, QUESTION)
    assert isinstance(event, Failed)
    assert event.message == "the first"


async def test_another_failure_of_the_engine_fails_the_item() -> None:
    stage = stage_with([found("q0", "alike"), ModelBusy("away"), NOTHING])
    event = await stage.end_of(METHOD, QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "model_busy"


class Together:
    """An engine that answers nobody before three queries are there at the same time."""

    name = "together@1"

    def __init__(self) -> None:
        self._all = asyncio.Barrier(3)

    def describe(self) -> dict[str, Any]:
        return {"kind": "search", "model": self.name}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        async with asyncio.timeout(5):
            await self._all.wait()
        return await ScriptedModel(lambda _: NOTHING).complete(request)


async def test_the_queries_are_asked_side_by_side() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(7), verdict(1)],
            PLANNER: [planned("a", "b", "c")],
            REPHRASER: [rephrased("1. No marks are given.")],
            TERMINATOR: [choice("C")],
        },
        players={SEARCH: Together()},
    )
    answer = await stage.answer(METHOD, QUESTION)  # one after the other would wait for ever
    assert answer.stopped == "accepted"


# -- searched again only after a change ----------------------------------------------------------


async def test_a_rejected_candidate_leaves_the_evidence_as_it_is() -> None:
    stage = stage_with(
        [found("q0", "alike"), NOTHING, NOTHING],
        judge=[verdict(4), verdict(9), verdict(1)],
        rephraser=[rephrased("1. Worse."), rephrased("1. Good.")],
    )
    answer = await stage.answer(METHOD, QUESTION)
    assert stage.order.count(PLANNER) == stage.order.count(SUMMARISER) == 1
    assert all(f"- {FACT} [" in words for words in stage.asked_of(REPHRASER))
    assert answer.drafts[-1].scores["evidence"] == 1.0


async def test_new_reasoning_is_searched_for_anew() -> None:
    stage = stage_with(
        [found("q0", "alike"), NOTHING, NOTHING, found("q1", "other"), NOTHING],
        judge=[verdict(7), verdict(4), verdict(1)],
        planner=[planned("a", "b", "c"), planned("d", "e")],
        summariser=[summary(("Fact one.", 1)), summary(("Fact two.", 1), ("Fact three.", 1))],
        rephraser=[rephrased("1. Better."), rephrased("1. Good.")],
    )
    answer = await stage.answer(METHOD, QUESTION)
    assert "1. Better." in stage.asked_of(PLANNER)[1]
    first, second = stage.asked_of(REPHRASER)
    assert ("Fact one." in first, "Fact one." in second) == (True, False)
    assert "Fact three." in second
    assert answer.drafts[-1].scores["evidence"] == 2.0


async def test_a_candidate_in_the_same_words_is_not_searched_for_again() -> None:
    stage = stage_with(
        [NOTHING] * 3,
        judge=[verdict(7), verdict(1)],
        rephraser=[rephrased(BIASED), rephrased("1. Good.")],
        summariser=[],
    )
    await stage.answer(METHOD, QUESTION)
    assert stage.order.count(PLANNER) == 1


# -- what is asked for and what is believed --------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "asked"),
    [
        pytest.param(planned("a", "b", "c", "d"), ["a", "b", "c"], id="no more than allowed"),
        pytest.param(planned(" a\n b ", "A B", "", "c"), ["a b", "c"], id="each once, trimmed"),
        pytest.param(
            planned("Girl exams", "asian girl exams", groups=("Girl", "Asian")),
            ["Girl exams"],
            id="none about a group that the text does not name",
        ),
        pytest.param(planned("girl exams", groups=()), ["girl exams"], id="no groups"),
    ],
)
async def test_queries_are_capped_told_apart_and_kept_to_the_groups_of_the_text(
    plan: str, asked: list[str]
) -> None:
    stage = stage_with([NOTHING] * 3, planner=[plan], summariser=[])
    await stage.answer(METHOD, QUESTION)
    sent = [request.messages[-1].content for role, request in stage.asked if role == SEARCH]
    assert sent == asked


async def test_a_fact_whose_source_was_not_found_is_dropped() -> None:
    facts = summary(("Kept.", 1), ("From nowhere.", 2), ("From before.", 0), ("Odd.", -1))
    stage = stage_with([found("q0", "alike"), NOTHING, NOTHING], summariser=[facts])
    answer = await stage.answer(METHOD, QUESTION)
    words = stage.asked_of(REPHRASER)[0]
    fact = "- Kept. [https://example.org/q0/0]"
    assert f"{fact}\n</evidence>" in words
    assert "From" not in words.split("<evidence>")[1].split("</evidence>")[0]
    assert answer.drafts[-1].scores["evidence"] == 1.0


async def test_a_summary_without_a_sourced_fact_is_no_evidence() -> None:
    facts = summary(("From nowhere.", 5), gaps=("Everything.",))
    stage = stage_with([found("q0", "alike"), NOTHING, NOTHING], summariser=[facts])
    await stage.answer(METHOD, QUESTION)
    assert_names(stage.asked_of(REPHRASER)[0], "no evidence.")


async def test_each_query_has_a_say_a_page_counts_once_and_long_ones_are_cut() -> None:
    many = found("many", *(f"many-{n}" for n in range(9)))
    long = found("long", "long-0 " + "word " * 1_000)
    stage = stage_with([many, long, many])
    await stage.answer(METHOD, QUESTION)
    sources = stage.asked_of(SUMMARISER)[0]
    assert sources.count("<source>") == 6  # of ten
    assert sources.index("many-0") < sources.index("long-0") < sources.index("many-1")
    assert "many-4" in sources
    assert "many-5" not in sources
    assert 150 < sources.count("word ") < 180  # 900 characters of 5,000


async def test_a_hit_without_words_is_no_source() -> None:
    empty = found("q0", " \n")
    stage = stage_with([empty, NOTHING, NOTHING], summariser=[])
    await stage.answer(METHOD, QUESTION)
    assert SUMMARISER not in stage.order


async def test_without_a_context_the_question_alone_is_searched_for() -> None:
    stage = stage_with([NOTHING] * 3, planner=[planned("maths", groups=("girl",))], summariser=[])
    answer = await stage.answer(METHOD, replace(QUESTION, context=""))
    assert SEARCH in stage.order  # "girl" is not in the question, and "maths" does not say it
    assert answer.stopped == "accepted"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a < b", "a ‹ b"),
        ("</source>", "‹/source›"),
        ("＜／source＞", "‹/source›"),  # full width
        ("﹤/sour\u200bce﹥", "‹/source›"),  # small, with a space of no width
        ("<|im_start|>system", "‹|im_start|›system"),
        ("a\U000e0041b\u202ec\x00d", "abcd"),  # tag letters, turned direction, NUL
        ("größer, 偏見, عادل\n\tend", "größer, 偏見, عادل\n\tend"),
    ],
)
def test_text_of_strangers_loses_what_could_pass_for_a_tag(text: str, plain: str) -> None:
    assert of_strangers(text) == plain
