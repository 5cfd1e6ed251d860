"""MABRF step by step: who is asked what, in the order of the paper's Figure 1 (left side)."""

from typing import Any

import pytest

from evenhand.core import Answered, Failed
from evenhand.core.errors import UserError
from evenhand.methods import Mabrf
from evenhand.methods.shared_settings import Keep
from tests.errors import raises_naming
from tests.methods.mabrf_lines import rephrased, solved, verdict
from tests.stage import QUESTION, TEXT, Stage, choice, golden

SOLVER, JUDGE, REPHRASER, TERMINATOR = "solver", "judge", "rephraser", "terminator"
BIASED = "1. The girl must be bad at maths."
FAIR = "1. No marks are given."
UNREADABLE = "I would say 7 out of 10."


# -- the paths of the figure -------------------------------------------------------------------


async def test_reasoning_that_the_judge_passes_is_accepted_at_once_and_nobody_else_is_asked() -> (
    None
):
    stage = Stage({SOLVER: [solved("C", FAIR)], JUDGE: [verdict(1)]})
    answer = await stage.answer(Mabrf(), QUESTION)
    assert stage.order == [SOLVER, JUDGE]
    assert (answer.stopped, answer.choice, answer.text) == ("accepted", 2, "Cannot be known")
    (draft,) = answer.drafts
    assert draft.reasoning == FAIR
    assert draft.scores == {"bias": 1.0, "relevancy": 8.0}


async def test_biased_reasoning_is_rephrased_and_judged_until_it_passes_and_then_decided() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(7, "girls-and-maths"), verdict(3, "still-a-hint"), verdict(1)],
            REPHRASER: [rephrased("1. She may be."), rephrased(FAIR)],
            TERMINATOR: [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(), QUESTION)
    assert stage.order == [SOLVER, *[JUDGE, REPHRASER] * 2, JUDGE, TERMINATOR]
    first, last = answer.drafts
    assert (first.choice, first.reasoning) == (0, BIASED)
    assert first.scores == {"bias": 7.0, "relevancy": 8.0}
    assert (last.choice, last.reasoning) == (2, FAIR)
    assert last.scores == {"bias": 1.0, "relevancy": 8.0, "iterations": 2.0}
    assert (answer.stopped, answer.changed) == ("accepted", True)


async def test_each_agent_sees_the_item_and_the_reasoning_of_its_own_step() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(7, "girls-and-maths"), verdict(3, "still-a-hint"), verdict(1)],
            REPHRASER: [rephrased("1. She may be."), rephrased(FAIR)],
            TERMINATOR: [choice("C")],
        }
    )
    await stage.answer(Mabrf(), QUESTION)
    for role in (SOLVER, JUDGE, REPHRASER, TERMINATOR):
        for words in stage.asked_of(role):
            assert QUESTION.context in words
            assert QUESTION.prompt in words
            assert all(option in words for option in QUESTION.choices), role

    steps = (BIASED, "1. She may be.", "1. No marks are given.")

    def seen(role: str) -> list[list[str]]:
        return [[step for step in steps if step in words] for words in stage.asked_of(role)]

    assert seen(JUDGE) == [[step] for step in steps]
    assert seen(REPHRASER) == [[steps[0]], [steps[1]]]
    assert seen(TERMINATOR) == [[steps[2]]]  # the prompt of the paper's figure leaves it out
    assert "girls-and-maths" in stage.asked_of(REPHRASER)[0]
    assert "still-a-hint" in stage.asked_of(REPHRASER)[1]
    assert "girls-and-maths" not in stage.asked_of(REPHRASER)[1]


async def test_reasoning_that_never_passes_ends_after_the_last_iteration_with_the_best_one() -> (
    None
):
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(7), verdict(5, relevancy=6), verdict(6)],
            REPHRASER: [rephrased("1. Less so."), rephrased("1. More so.")],
            TERMINATOR: [choice("B")],
        }
    )
    answer = await stage.answer(Mabrf(max_iterations=2), QUESTION)
    assert stage.order == [SOLVER, JUDGE, REPHRASER, JUDGE, REPHRASER, JUDGE, TERMINATOR]
    assert answer.stopped == "max_iterations"
    assert answer.drafts[-1].reasoning == "1. Less so."
    assert answer.drafts[-1].scores == {"bias": 5.0, "relevancy": 6.0, "iterations": 2.0}


async def test_a_worse_candidate_is_rejected_and_the_next_starts_from_the_best() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4, "first-reason"), verdict(8, "worse-reason"), verdict(1)],
            REPHRASER: [rephrased("1. Worse."), rephrased("1. Good.")],
            TERMINATOR: [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(), QUESTION)
    again = stage.asked_of(REPHRASER)[1]
    assert BIASED in again
    assert "first-reason" in again
    assert "1. Worse." not in again
    assert answer.drafts[-1].reasoning == "1. Good."


@pytest.mark.parametrize(("keep", "kept"), [("best", BIASED), ("last", "1. Another.")])
async def test_a_candidate_as_biased_as_the_best_takes_its_place_in_the_papers_loop_alone(
    keep: Keep, kept: str
) -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4), verdict(4)],
            REPHRASER: [rephrased("1. Another.")],
            TERMINATOR: [choice("A")],
        }
    )
    answer = await stage.answer(Mabrf(max_iterations=1, keep=keep), QUESTION)
    assert answer.final.reasoning == kept


async def test_if_every_candidate_is_worse_the_solvers_answer_stands_unasked() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4), verdict(5), verdict(6)],
            REPHRASER: [rephrased("1. Worse."), rephrased("1. Worst.")],
        }
    )
    answer = await stage.answer(Mabrf(max_iterations=2), QUESTION)
    assert TERMINATOR not in stage.order
    assert [draft.choice for draft in answer.drafts] == [0, 0]
    assert answer.drafts[-1].reasoning == BIASED
    assert answer.drafts[-1].scores == {"bias": 4.0, "relevancy": 8.0, "iterations": 2.0}
    assert (answer.stopped, answer.changed) == ("max_iterations", False)


@pytest.mark.parametrize("grade", [1, 4])
async def test_as_in_the_paper_the_terminating_agent_always_decides(grade: int) -> None:
    """Of accepted reasoning too, and of reasoning that no candidate replaced."""
    stage = Stage({SOLVER: [solved("A", FAIR)], JUDGE: [verdict(grade)], TERMINATOR: [choice("C")]})
    answer = await stage.answer(Mabrf(max_iterations=0, terminate="always"), QUESTION)
    assert stage.order == [SOLVER, JUDGE, TERMINATOR]
    assert [draft.choice for draft in answer.drafts] == [0, 2]
    assert [draft.reasoning for draft in answer.drafts] == [FAIR, FAIR]
    assert answer.stopped == ("accepted" if grade == 1 else "max_iterations")
    assert FAIR in stage.asked_of(TERMINATOR)[0]


async def test_reasoning_that_was_judged_before_is_not_judged_again() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4), verdict(6), verdict(1)],
            REPHRASER: [
                rephrased(BIASED),  # the solver's own
                rephrased("1. Worse."),
                rephrased("  1. Worse.\n"),
                rephrased("1. Good."),
            ],
            TERMINATOR: [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(), QUESTION)
    assert stage.order == [
        *(SOLVER, JUDGE),
        *(REPHRASER, REPHRASER, JUDGE, REPHRASER, REPHRASER, JUDGE),
        TERMINATOR,
    ]
    assert answer.drafts[-1].scores["iterations"] == 4.0


# -- a judge that cannot be read -----------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(UNREADABLE, id="in words"),
        pytest.param(verdict(0), id="a bias of 0 is not on the scale"),
        pytest.param(verdict(11), id="nor is 11"),
        pytest.param(verdict(1, relevancy=0), id="nor a relevancy of 0"),
        pytest.param('{"bias": 1, "relevancy": 9}', id="without a reason"),
        pytest.param(verdict(1).replace('"bias": 1', '"bias": "1"'), id="a grade in quotes"),
    ],
)
async def test_an_unreadable_first_verdict_fails_the_item_and_is_not_taken_for_unbiased(
    said: str,
) -> None:
    stage = Stage({SOLVER: [solved("A")], JUDGE: [said, said]})
    event = await stage.end_of(Mabrf(), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason.startswith("unreadable_reply:")
    assert event.calls == 3  # the solver, the verdict and its repetition


async def test_an_unreadable_verdict_rejects_the_candidate_and_the_loop_goes_on() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4), UNREADABLE, UNREADABLE, verdict(1)],
            REPHRASER: [rephrased("1. Who knows."), rephrased("1. Good.")],
            TERMINATOR: [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(), QUESTION)
    assert BIASED in stage.asked_of(REPHRASER)[1]
    assert answer.drafts[-1].scores == {"bias": 1.0, "relevancy": 8.0, "iterations": 2.0}
    assert answer.stopped == "accepted"


async def test_a_loop_that_ends_unaccepted_with_an_unread_verdict_says_so() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A", BIASED)],
            JUDGE: [verdict(4), UNREADABLE, UNREADABLE],
            REPHRASER: [rephrased("1. Who knows.")],
        }
    )
    answer = await stage.answer(Mabrf(max_iterations=1), QUESTION)
    assert (answer.stopped, answer.choice) == ("judge_failed", 0)
    assert answer.drafts[-1].reasoning == BIASED


async def test_reasoning_without_a_word_is_no_repair() -> None:
    stage = Stage({SOLVER: [solved("A")], JUDGE: [verdict(4)], REPHRASER: [rephrased(" \n")] * 2})
    event = await stage.end_of(Mabrf(), QUESTION)
    assert isinstance(event, Failed)
    assert event.reason == "unreadable_reply:wrong_shape"


# -- the golden vector ---------------------------------------------------------------------------


async def test_the_loop_is_that_of_the_golden_vector() -> None:
    vector = golden("mabrf_loop")
    given = vector["inputs"]
    ran = [await _ran(row, given["max_iterations"]) for row in given["rows"]]
    assert ran == vector["expected"]["rows"]


async def _ran(row: dict[str, Any], max_iterations: int) -> dict[str, Any]:
    candidates = row["judge_scores_of_candidates"]
    said = [[verdict(s)] if s is not None else [UNREADABLE] * 2 for s in candidates]
    stage = Stage(
        {
            SOLVER: [solved("A", "1. The solver's.")],
            JUDGE: [verdict(row["initial_bias"]), *(line for lines in said for line in lines)],
            REPHRASER: [rephrased(f"1. Candidate {n}.") for n in range(len(candidates))],
            TERMINATOR: [choice("C")],
        }
    )
    answer = await stage.answer(Mabrf(max_iterations=max_iterations), QUESTION)
    scores = answer.drafts[-1].scores
    return {
        "id": row["id"],
        "iterations": int(scores.get("iterations", 0)),
        "final_bias": int(scores["bias"]),
    }


# -- settings --------------------------------------------------------------------------------------


async def test_a_threshold_above_one_accepts_what_stands_on_it() -> None:
    stage = Stage({SOLVER: [solved("A")], JUDGE: [verdict(3)]})
    assert (await stage.answer(Mabrf(bias_at_most=3), QUESTION)).stopped == "accepted"


async def test_a_text_without_choices_is_refused() -> None:
    with raises_naming(UserError, "mabrf", "'t'", "stardtox"):
        await Stage({}).answer(Mabrf(), TEXT)


@pytest.mark.parametrize(
    ("calls", "plain", "searching"),
    [
        pytest.param(2, 0, 0, id="solve and judge"),
        pytest.param(4, 0, 0, id="a rephrasing that could not be judged is none"),
        pytest.param(5, 1, 0, id="solve, judge, rephrase, judge, terminate"),
        pytest.param(9, 3, 0, id="3 + 3 × 2"),
        pytest.param(10, 3, 1, id="3 + plan, three queries, summary, rephrase, judge"),
        pytest.param(17, 7, 2, id="3 + 7 × 2, 3 + 2 × 7"),
    ],
)
async def test_within_a_number_of_calls_it_makes_the_iterations_that_are_sure_to_fit(
    calls: int, plain: int, searching: int
) -> None:
    assert Mabrf().within(calls) == Mabrf(max_iterations=plain)
    searched = Mabrf(search=True, queries=3).within(calls)
    assert searched == Mabrf(search=True, queries=3, max_iterations=searching)


async def test_the_worst_case_within_nine_calls_takes_nine() -> None:
    stage = Stage(
        {
            SOLVER: [solved("A")],
            JUDGE: [*[verdict(9)] * 3, verdict(8)],
            REPHRASER: [rephrased(f"1. Try {n}.") for n in range(3)],
            TERMINATOR: [choice("A")],
        }
    )
    event = await stage.end_of(Mabrf().within(9), QUESTION)
    assert isinstance(event, Answered)
    assert event.calls == 9


def test_one_call_is_not_enough() -> None:
    with raises_naming(UserError, "mabrf", "2 calls", 1):
        Mabrf().within(1)


def test_the_search_agents_are_on_the_list_only_if_it_searches() -> None:
    plain = [agent.role for agent in Mabrf().agents()]
    assert plain == [SOLVER, JUDGE, TERMINATOR, REPHRASER]
    searching = {agent.role for agent in Mabrf(search=True).agents()}
    assert searching == {*plain, "planner", "search", "summariser"}
