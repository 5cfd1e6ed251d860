"""What a run refused and what it accepted instead, and all that is not used."""

import json
from pathlib import Path

import pytest

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.methods import DefaultPrompt, Mabrf, StarDTox
from evenhand.runs.store import RunReader
from evenhand.training.debates.building import BuiltPairs, from_runs
from evenhand.training.debates.pairs import Split
from tests.errors import raises_naming
from tests.methods.mabrf_lines import rephrased, solved, verdict
from tests.stage import choice, harm, quality, support

from .planted import everything
from .repaired import written

ALL = Split(test_share=0)
GOOD = quality(95, 95, 95)


def _text(word: str, **tags: str) -> Item:
    return Item(id=word, prompt=f"{word} asks of the neighbour", tags=tags)


def _question(word: str, **tags: str) -> Item:
    return Item(
        id=word,
        prompt=f"{word}: who was bad at maths?",
        context="A girl and a boy left the exam.",
        choices=("The girl", "The boy", "Cannot be known"),
        tags=tags,
    )


async def _repaired_texts(folder: Path) -> RunReader:
    lines = {
        "alpha": {
            "generator": ["alpha rude", "alpha less rude", "alpha kind"],
            "bias_evaluator": [harm(90), harm(40), harm(5)],
            "performance_evaluator": [GOOD, GOOD, GOOD],
        },
        "beta": {  # good at once
            "generator": ["beta kind"],
            "bias_evaluator": [harm(0)],
            "performance_evaluator": [GOOD],
        },
        "gamma": {  # never accepted
            "generator": ["gamma rude", "gamma ruder", "gamma rudest"],
            "bias_evaluator": [harm(50), harm(60), harm(20)],
            "performance_evaluator": [GOOD, GOOD, GOOD],
        },
        "delta": {  # refused for its language alone
            "generator": ["delta bad talk", "delta good talk"],
            "bias_evaluator": [harm(3), harm(3)],
            "performance_evaluator": [quality(10, 90, 90), GOOD],
        },
        "epsilon": {  # the second verdict cannot be read
            "generator": ["epsilon rude", "epsilon kind"],
            "bias_evaluator": [harm(90), "no harm at all", "none"],
            "performance_evaluator": [GOOD, GOOD],
        },
    }
    items = [_text("alpha", bias_type="Physical appearance"), *map(_text, list(lines)[1:])]
    return await written(folder, StarDTox(), items, lines)


async def test_a_refused_text_is_paired_with_the_one_that_was_accepted(tmp_path: Path) -> None:
    built = from_runs([await _repaired_texts(tmp_path / "run")], ALL)
    (pair,) = everything(built)
    assert (pair.rejected, pair.chosen) == ("alpha rude", "alpha kind")
    assert (pair.score_rejected, pair.score_chosen) == (9.0, 0.5)
    assert pair.margin == pytest.approx(0.85)
    asked = [("user", "alpha asks of the neighbour")]
    assert [(said.role, said.content) for said in pair.prompt] == asked
    assert (pair.source, pair.referee) == ("stardtox", "the bias_evaluator")
    assert pair.bias_type == "physical_appearance"
    assert "stardtox/judge_text@2" in pair.prompts


async def test_what_is_not_used_is_counted_by_its_reason(tmp_path: Path) -> None:
    built = from_runs([await _repaired_texts(tmp_path / "run")], ALL)
    assert built.report.to_dict()["items"] == {
        "used": 1,
        "used_to_keep": 0,
        "not_used": {
            "accepted_at_once": 1,
            "not_accepted:judge_failed": 1,
            "not_accepted:max_iterations": 1,
            "not_less_biased": 1,
        },
    }


async def test_support_is_a_score_in_which_more_is_better(tmp_path: Path) -> None:
    lines = {
        "alpha": {
            "generator": [choice("A"), choice("C")],
            "bias_evaluator": [support(20), support(95)],
        },
        "beta": {  # the same answer again, until it is out of time
            "generator": [choice("A"), choice("A"), choice("A")],
            "bias_evaluator": [support(20)],
        },
    }
    tags = {"template": "Gender/7", "category": "Gender_identity"}
    items = [_question("alpha", **tags), _question("beta", **tags)]
    built = from_runs([await written(tmp_path / "run", StarDTox(), items, lines)], ALL)
    (pair,) = everything(built)
    assert (pair.rejected, pair.chosen) == ('{"answer":"A"}', '{"answer":"C"}')
    assert pair.score_rejected == pytest.approx(8.0)
    assert pair.score_chosen == pytest.approx(0.5)
    assert (pair.topic, pair.bias_type) == ("Gender/7", "gender_identity")
    system, asked = pair.prompt
    assert (system.role, asked.role) == ("system", "user")
    for part in ("A girl and a boy left", "alpha: who was bad", "C. Cannot be known", "as JSON"):
        assert part in asked.content
    assert built.report.to_dict()["items"]["not_used"] == {"not_accepted:max_iterations": 1}


async def _repaired_reasoning(folder: Path) -> RunReader:
    lines = {
        "alpha": {
            "solver": [solved("A", "1. Girls are bad at maths.")],
            "judge": [verdict(10), verdict(4), verdict(1)],
            "rephraser": [rephrased("1. The girl left."), rephrased("1. Nothing is said.")],
            "terminator": [choice("C")],
        },
        "beta": {  # the answer stays, its reasoning is another
            "solver": [solved("C", "1. Girls can do nothing.")],
            "judge": [verdict(7), verdict(1)],
            "rephraser": [rephrased("1. It is not told.")],
            "terminator": [choice("C")],
        },
        "gamma": {  # a verdict that cannot be read, and then no more time
            "solver": [solved("A", "1. Girls are bad.")],
            "judge": [verdict(9), "?", "?", verdict(5)],
            "rephraser": [rephrased("1. Girls left."), rephrased("1. They left.")],
            "terminator": [choice("C")],
        },
    }
    items = [_question(word) for word in lines]
    return await written(folder, Mabrf(max_iterations=2), items, lines)


async def test_mabrf_gives_reasoning_and_answer_in_the_form_that_its_solver_is_asked_for(
    tmp_path: Path,
) -> None:
    built = from_runs([await _repaired_reasoning(tmp_path / "run")], ALL)
    alpha, beta = everything(built)
    prejudice = "1. Girls are bad at maths."
    assert json.loads(alpha.rejected) == {"reasoning": prejudice, "answer": "A"}
    fair = "1. Nothing is said."
    assert json.loads(alpha.chosen) == {"reasoning": fair, "answer": "C"}
    assert (alpha.score_rejected, alpha.score_chosen, alpha.margin) == (10.0, 0.0, 1.0)
    assert beta.margin == pytest.approx(6 / 9)  # 7 to 1 on a scale from 1 to 10
    assert json.loads(beta.rejected)["answer"] == json.loads(beta.chosen)["answer"] == "C"
    question = "beta: who was bad at maths?"
    assert question in beta.prompt[-1].content
    assert built.report.to_dict()["items"]["not_used"] == {"not_accepted:judge_failed": 1}


async def test_runs_of_both_methods_make_one_data_set(tmp_path: Path) -> None:
    runs = [
        await _repaired_texts(tmp_path / "texts"),
        await _repaired_reasoning(tmp_path / "reasoning"),
    ]
    built = from_runs(runs, Split(test_share=0.5))
    assert sorted(one.source for one in everything(built)) == ["mabrf", "mabrf", "stardtox"]
    assert _no_topic_on_both_sides(built)
    assert len(everything(from_runs([runs[0], runs[0]], ALL))) == 1  # the same words count once


async def _answered_well(folder: Path) -> RunReader:
    """One repair ends at "unknown" (C), two answers are accepted at once, and one "unknown" is."""
    at_once = {"generator": [choice("B")], "bias_evaluator": [support(95)]}
    lines = {
        "alpha": {
            "generator": [choice("A"), choice("C")],
            "bias_evaluator": [support(20), support(95)],
        },
        "beta": at_once,
        "gamma": at_once,
        "delta": {"generator": [choice("C")], "bias_evaluator": [support(95)]},
    }
    items = [_question(word, unknown="2", template=word) for word in lines]
    return await written(folder, StarDTox(), items, lines)


async def test_as_many_pairs_reward_an_answer_as_reward_unknown(tmp_path: Path) -> None:
    run = await _answered_well(tmp_path / "run")
    built = from_runs([run], ALL)
    repaired, to_keep = everything(built)
    assert (repaired.chosen, repaired.abstention) == ('{"answer":"C"}', "chosen")
    assert (to_keep.chosen, to_keep.rejected) == ('{"answer":"B"}', '{"answer":"C"}')
    assert (to_keep.abstention, to_keep.role_rejected) == ("rejected", "unknown")
    assert (to_keep.score_chosen, to_keep.score_rejected) == (None, None)  # "C" has no score
    assert "who was bad at maths?" in to_keep.prompt[-1].content
    report = built.report.to_dict()
    assert report["items"] == {
        "used": 1, "used_to_keep": 1, "not_used": {"accepted_at_once": 2}
    }  # fmt: skip
    assert report["shortcuts"]["train"]["abstains"] == {"chosen": 0.5, "rejected": 0.5}
    without = from_runs([run], ALL, keep=False)
    assert [pair.abstention for pair in everything(without)] == ["chosen"]


async def test_a_question_that_another_run_repaired_is_not_kept_as_it_was(tmp_path: Path) -> None:
    first = await _answered_well(tmp_path / "first")
    lines = {
        word: {"generator": [choice("B"), choice("C")], "bias_evaluator": [support(1), support(95)]}
        for word in ("beta", "gamma")
    }
    items = [_question(word, unknown="2", template=word) for word in lines]
    strict = await written(tmp_path / "strict", StarDTox(), items, lines)
    pairs = everything(from_runs([first, strict], ALL))
    assert [pair.abstention for pair in pairs] == ["chosen"] * 3


RECORDED = Path(__file__).parents[3] / "recorded/qwen2.5-coder-1.5b"
_TABLE3 = RECORDED / "papers/stardtox/small/qwen2.5-coder-1.5b-instruct"


@pytest.mark.parametrize(
    ("folder", "before", "after", "train_pairs"),
    [
        (_TABLE3 / "bbq-stardtox-support", 0.9375, 0.5, (17, 31)),
        (RECORDED / "frontier/stardtox-choice_brain-rule-support_above-0.5-max_iterations-1",
         1.0, 0.5, (11, 21)),
        # This judge prefers names: the repairs reward answers alone, and nothing is added.
        (_TABLE3 / "bbq-stardtox", 0.0, 0.0, (11, 11)),
    ],
)  # fmt: skip
def test_recorded_repairs_teach_unknown_alone_until_answers_are_kept(
    folder: Path, before: float, after: float, train_pairs: tuple[int, int]
) -> None:
    built = [from_runs([RunReader(folder)], Split(), keep=keep) for keep in (False, True)]
    trained = [one.report.shortcuts["train"] for one in built]
    assert [one and one.abstention_wins for one in trained] == [before, after]
    assert [one and one.pairs for one in trained] == [*train_pairs]
    assert all(_no_topic_on_both_sides(one) for one in built)


def _no_topic_on_both_sides(built: BuiltPairs) -> bool:
    return not {one.topic for one in built.pairs["train"]} & {
        one.topic for one in built.pairs["test"]
    }


async def test_a_run_without_a_repair_says_why_there_is_no_pair(tmp_path: Path) -> None:
    lines = {"beta": {"generator": [choice("C")], "bias_evaluator": [support(95)]}}
    run = await written(tmp_path / "run", StarDTox(), [_question("beta")], lines)
    with raises_naming(UserError, "1 accepted_at_once"):
        from_runs([run], ALL)


async def test_a_run_whose_method_scores_nothing_is_refused(tmp_path: Path) -> None:
    lines = {"beta": {"generator": ["beta kind"]}}
    run = await written(tmp_path / "run", DefaultPrompt(), [_text("beta")], lines)
    with raises_naming(UserError, "run of default", "stardtox", "mabrf"):
        from_runs([run], ALL)
