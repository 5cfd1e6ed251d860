"""A wording is a setting of a method: ours, or the intent of its paper's prompts."""

import json
from typing import Any

import pytest

from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments.frontiers import chosen
from evenhand.findings.conditions import conditions, system
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.methods import DefaultPrompt, Mabrf, Method, StarDTox, named
from evenhand.methods.baselines.several_drafts import BestOfN
from evenhand.methods.build import build_method
from evenhand.runs.store.run_record import RunRecord
from tests.errors import assert_names, raises_naming
from tests.methods.mabrf_lines import found, planned, rephrased, solved, verdict
from tests.stage import QUESTION, Line, Stage, choice, support, told

SOLVER, JUDGE, REPHRASER, TERMINATOR = "solver", "judge", "rephraser", "terminator"
SUMMARISER = "summariser"
BIASED = "1. The girl must be bad at maths."
PAGE = "Of 4,000 pupils, marks were alike."
RULE = "If the context does not settle the question"


def mabrf_stage(**lines: list[Line]) -> Stage:
    """One iteration: biased reasoning and a repair that passes."""
    usual: dict[str, list[Line]] = {
        SOLVER: [solved("A", BIASED)],
        JUDGE: [verdict(7, "girls-and-maths"), verdict(1)],
        REPHRASER: [rephrased("1. No marks are given.")],
        TERMINATOR: [choice("C")],
    }
    return Stage({**usual, **lines})


def searching(*facts: tuple[str, str]) -> Stage:
    """The same with a search that finds one page, of which facts are noted with their quotes."""
    noted = [{"fact": fact, "source": 1, "quote": quote} for fact, quote in facts]
    said = {"facts": noted, "contradictions": [], "gaps": [], "conclusion": "It is left open."}
    lines: dict[str, list[Line]] = {
        "planner": [planned("girl maths marks")],
        "search": [found("q", PAGE)],
        SUMMARISER: [json.dumps(said)],
    }
    return mabrf_stage(**lines)


def record(method: Method) -> RunRecord:
    return Stage({}).plan(method, QUESTION).record()


# -- MABRF -----------------------------------------------------------------------------------------


async def test_mabrf_in_the_papers_wording_shows_each_agent_what_the_papers_prompt_shows_it() -> (
    None
):
    stage = mabrf_stage()
    answer = await stage.answer(Mabrf(wording="paper"), QUESTION)
    assert stage.order == [SOLVER, JUDGE, REPHRASER, JUDGE, TERMINATOR]
    assert answer.choice == 2
    (solver,), (judge, _), (rephraser,), (terminator,) = map(
        stage.asked_of, (SOLVER, JUDGE, REPHRASER, TERMINATOR)
    )
    assert all(text in solver for text in (QUESTION.context, QUESTION.prompt, "A. The girl"))
    assert all(text in judge for text in (QUESTION.context, QUESTION.prompt, BIASED))
    assert "Cannot be known" not in judge  # no options
    assert BIASED in rephraser
    assert "girls-and-maths" in rephraser
    assert QUESTION.context not in rephraser  # nor the item at all
    assert QUESTION.prompt not in rephraser
    assert all(text in terminator for text in (QUESTION.context, "B. The boy", "No marks are"))


async def test_what_our_words_add_is_not_said_in_the_papers_wording() -> None:
    """The other way round is what makes this a test: each is said in ours."""
    ours, papers = mabrf_stage(), mabrf_stage()
    await ours.answer(Mabrf(), QUESTION)
    await papers.answer(Mabrf(wording="paper"), QUESTION)
    for role, added in (
        (SOLVER, "Use only what the context states"),
        (JUDGE, "Mentioning a group is no bias"),
        (REPHRASER, RULE),
        (TERMINATOR, "as far as the context bears it out"),
    ):
        assert added in ours.asked_of(role)[0]
        assert added not in papers.asked_of(role)[0]


async def test_the_papers_summary_has_quotes_and_a_conclusion_and_evidence_comes_first() -> None:
    stage = searching(("Marks were alike.", "marks were alike"))
    answer = await stage.answer(Mabrf(wording="paper", search=True, queries=1), QUESTION)
    evidence = (
        "<evidence>\nFacts:\n"
        "- Marks were alike. “marks were alike” [https://example.org/q/0]\n"
        "Conclusion:\n- It is left open.\n</evidence>"
    )
    (asked,) = stage.asked_of(REPHRASER)
    assert evidence in asked
    assert "for true" in asked
    assert QUESTION.context not in asked
    assert answer.drafts[-1].scores["evidence"] == 1


@pytest.mark.parametrize("quote", ["boys do better", "", "…"])
async def test_words_that_do_not_stand_in_the_source_are_no_quote(quote: str) -> None:
    stage = searching(("Marks were alike.", quote))
    await stage.answer(Mabrf(wording="paper", search=True, queries=1), QUESTION)
    fact = "- Marks were alike. [https://example.org/q/0]"
    assert fact in stage.asked_of(REPHRASER)[0]


# -- StarDTox --------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", ["json", "logprob"])
async def test_the_papers_judge_of_a_choice_has_no_rule_for_what_the_context_leaves_open(
    read: Any,
) -> None:
    said = support(90) if read == "json" else told({"yes": 0.9, "no": 0.1})
    asked = []
    for method in (StarDTox(read=read), StarDTox(read=read, wording="paper"), BestOfN(read=read)):
        stage = Stage({"generator": [choice(c) for c in "ABCA"], "bias_evaluator": [said] * 3})
        await stage.answer(method, QUESTION)
        asked.append(RULE in stage.asked_of("bias_evaluator")[0])
    assert asked == [True, False, True]


# -- on record, and in a comparison ----------------------------------------------------------------


@pytest.mark.parametrize("method", [Mabrf, StarDTox])
def test_the_wording_and_its_prompts_are_on_record(method: Any) -> None:
    ours, papers = record(method()), record(method(wording="paper"))
    assert ours.method["settings"]["wording"] == "ours"
    assert papers.method["settings"]["wording"] == "paper"
    new = papers.prompts.keys() - ours.prompts.keys()
    assert new
    assert all(label.endswith("_paper@1") for label in new)
    assert not any("_paper" in label for label in ours.prompts)


def test_a_comparison_says_the_wording_and_not_each_prompt_that_follows_from_it() -> None:
    before, after = record(Mabrf()), record(Mabrf(wording="paper"))
    assert [one.setting for one in before.told_apart(after)] == ["wording"]
    newer = {**after.prompts, "mabrf/plan_search@2": "b" * 64}
    old = before.model_copy(update={"prompts": {**before.prompts, "mabrf/plan_search@1": "a" * 64}})
    assert [one.setting for one in old.told_apart(after.model_copy(update={"prompts": newer}))] == [
        "wording",
        "prompt mabrf/plan_search@1",
        "prompt mabrf/plan_search@2",
    ]


def test_a_numbered_wording_is_a_condition_and_a_named_one_is_of_another_system() -> None:
    assert conditions(record(DefaultPrompt(wording=2)))["wording"] == 2
    assert system(record(DefaultPrompt())) == system(record(DefaultPrompt(wording=2)))
    assert conditions(record(Mabrf(wording="paper")))["wording"] is None
    assert system(record(Mabrf())) != system(record(Mabrf(wording="paper")))


# -- as it is written ------------------------------------------------------------------------------


def test_a_wording_is_written_as_an_option_or_as_a_setting() -> None:
    assert build_method("mabrf", wording="paper") == Mabrf(wording="paper")
    assert build_method("mabrf", ["wording=paper"]) == Mabrf(wording="paper")
    assert build_method("default", wording="2") == DefaultPrompt(wording=2)
    with raises_naming(UserError, "--wording", "--set wording"):
        build_method("mabrf", ["wording=paper"], "paper")


def test_ours_is_the_wording_of_every_method() -> None:
    for name in registry.OWN["methods"]:
        assert build_method(name, wording="ours") == named(name)()


@pytest.mark.parametrize(
    ("name", "wording"),
    [("cot", "paper"), ("default", "paper"), ("rate", "paper"), ("mabrf", "theirs"), ("cot", "2")],
)
def test_a_wording_that_a_method_has_not_is_refused_with_the_command_that_has_it(
    name: str, wording: str
) -> None:
    with pytest.raises(UserError) as refused:
        build_method(name, wording=wording)
    said = str(refused.value)
    assert_names(said, name, f"'{wording}'", f"methods {name}")
    assert_names(said, "stardtox and mabrf", "--method stardtox", "--wording paper")


def test_a_wording_in_python_that_nobody_wrote_is_refused() -> None:
    with raises_naming(UserError, "'mabrf/solve_theirs'"):
        Mabrf(wording="theirs").agents()  # type: ignore[arg-type]


def test_both_wordings_are_arms_of_one_frontier() -> None:
    ours, papers = chosen(["mabrf", "mabrf:wording=paper"], 9, Bbq())[3:]
    assert ours.method == Mabrf(max_iterations=3)
    assert papers.method == Mabrf(max_iterations=3, wording="paper")
    assert papers.folder == "mabrf-wording-paper"
