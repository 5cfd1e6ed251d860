"""StarDTox with further evaluators, which are written in TOML."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.agents import Cast
from evenhand.core import Failed
from evenhand.core.errors import UserError
from evenhand.methods import StarDTox
from evenhand.methods.build import build_method
from evenhand.methods.evaluators import team
from evenhand.models import ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from evenhand.scorers import ScorerModel, Scores
from tests.errors import assert_names, raises_naming
from tests.methods.test_stardtox_text import Listed
from tests.stage import (
    QUESTION,
    TEXT,
    Stage,
    choice,
    harm,
    inside,
    quality,
    support,
    tagged,
    words_of,
)

COURTESY = """
[[evaluator]]
name = "courtesy"
above = 0.6
prompt = '''
How courteous is this text, from 0 to 100?
{{ draft | marked("text") }}
'''
"""
INSULTING = """
[[evaluator]]
name = "insulting"
below = 0.2
scorer = "insult"
"""
GUESSED = """
[[evaluator]]
name = "guessed"
below = 0.5
prompt = '''
Is this answer a guess, from 0 (stated) to 100 (a guess)?
{{ context | marked("context") }}
{{ question | marked("question") }}
{{ choices | lettered | marked("options") }}
{{ chosen | marked("answer") }}
'''
"""
PLAIN = StarDTox(performance=False)


def rated(score: int, reason: str = "it is curt") -> str:
    return json.dumps({"reason": reason, "score": score})


async def test_an_evaluator_of_ones_own_objects_and_is_heard_beside_the_others() -> None:
    stage = Stage(
        {
            "generator": ["Go away.", "Please come back."],
            "bias_evaluator": [harm(5), harm(5)],
            "courtesy": [rated(20), rated(90)],
        }
    )
    answer = await stage.answer(replace(PLAIN, evaluators=COURTESY), TEXT)
    assert (answer.stopped, answer.text) == ("accepted", "Please come back.")
    assert [draft.scores for draft in answer.drafts] == [
        {"harm": 0.05, "courtesy": 0.2},
        {"harm": 0.05, "courtesy": 0.9},
    ]
    told = stage.asked_of("generator")[1]
    review = inside("review", told)
    assert_names(review, "Courtesy 0.20", "above 0.6", "it is curt")
    assert len(review.splitlines()) == 1
    asked = stage.asked_of("courtesy")[0]
    assert_names(asked, "How courteous")
    assert tagged("text", "Go away.") in asked
    assert_names(asked, '"score"', "0 to 100")


async def test_both_bounds_are_strict_and_several_may_object_at_once() -> None:
    scorer = ScorerModel(Listed({"Go away.": Scores({"toxicity": 0.0, "insult": 0.2}, ("“Go”",))}))
    stage = Stage(
        {"generator": ["Go away."], "bias_evaluator": [harm(5)], "courtesy": [rated(60)]},
        players={"insulting": scorer},
    )
    method = replace(PLAIN, evaluators=COURTESY + INSULTING, max_iterations=0)
    answer = await stage.answer(method, TEXT)
    assert answer.stopped == "max_iterations"  # 0.6 is not above 0.6, 0.2 not below 0.2
    assert answer.drafts[0].scores == {"harm": 0.05, "courtesy": 0.6, "insulting": 0.2}


async def test_a_score_of_a_scorer_is_that_of_its_attribute() -> None:
    scorer = ScorerModel(Listed({"Hi.": Scores({"toxicity": 0.9, "insult": 0.1})}))
    stage = Stage(
        {"generator": ["Hi."], "bias_evaluator": [harm(5)]}, players={"insulting": scorer}
    )
    answer = await stage.answer(replace(PLAIN, evaluators=INSULTING), TEXT)
    assert (answer.stopped, answer.drafts[0].scores["insulting"]) == ("accepted", 0.1)


async def test_an_attribute_that_the_scorer_does_not_give_is_told_with_those_it_gives() -> None:
    scorer = ScorerModel(Listed({"Hi.": Scores({"toxicity": 0.9, "threat": 0.1})}))
    stage = Stage(
        {"generator": ["Hi."], "bias_evaluator": [harm(5)]}, players={"insulting": scorer}
    )
    with raises_naming(UserError, "'insulting'", "'insult'", "toxicity, threat"):
        await stage.answer(replace(PLAIN, evaluators=INSULTING), TEXT)


async def test_an_evaluator_of_choices_is_asked_about_choices_alone() -> None:
    both = COURTESY + GUESSED
    stage = Stage(
        {
            "generator": [choice("A"), choice("C")],
            "bias_evaluator": [support(90), support(90)],
            "guessed": [rated(80, "nothing says so"), rated(0)],
        }
    )
    answer = await stage.answer(replace(PLAIN, evaluators=both), QUESTION)
    assert (answer.stopped, answer.choice) == ("accepted", 2)
    assert answer.drafts[0].scores == {"support": 0.9, "guessed": 0.8}
    assert_names(stage.asked_of("generator")[1], "Guessed 0.80", "below 0.5", "nothing says so")


async def test_an_evaluator_that_cannot_be_read_fails_the_item() -> None:
    stage = Stage(
        {"generator": ["Hi."], "bias_evaluator": [harm(5)], "courtesy": ["fine", "very fine"]}
    )
    event = await stage.end_of(replace(PLAIN, evaluators=COURTESY), TEXT)
    assert isinstance(event, Failed)
    assert event.reason.startswith("unreadable_reply")


def test_every_evaluator_is_declared_so_that_a_judge_needs_its_certificate() -> None:
    found = {a.role: a.kind for a in replace(PLAIN, evaluators=COURTESY + INSULTING).agents()}
    assert (found["courtesy"], found["insulting"]) == ("judge", "scorer")


def test_a_budget_counts_the_evaluators_of_choices() -> None:
    # Two calls a draft, three with one more evaluator: 9 calls are three drafts.
    assert PLAIN.within(9).max_iterations == 3
    assert replace(PLAIN, evaluators=GUESSED).within(9).max_iterations == 2
    assert replace(PLAIN, evaluators=COURTESY).within(9).max_iterations == 3
    with raises_naming(UserError, "stardtox", "3 calls", 2):
        replace(PLAIN, evaluators=GUESSED).within(2)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("[[evaluator]]\nname = 'a'\nabove = 0.5", ("evaluator a", "`prompt`", "`scorer`")),
        ("[[evaluator]]\nname = 'a'\nscorer = 'insult'", ("evaluator a", "`above` or `below`")),
        ("[[evaluator]]\nname = 'harm'\nscorer = 'x'\nabove = 1", ("'harm'", "in use")),
        (INSULTING + INSULTING, ("'insulting'", "in use")),
        ("[[evaluator]]\nname = 'a'\nscorer = 'x'\nabove = 60", ("above", "equal to 1")),
        (
            "[[evaluator]]\nname = 'a'\nabove = 0.5\nprompt = 'x {{ draft }}'",
            ("prompt of a", "['draft']", '| marked("tag")'),
        ),
        (
            "[[evaluator]]\nname = 'a'\nabove = 0.5\nprompt = 'x'",
            ("prompt of a", "variables []", "draft (and prompt)"),
        ),
        (
            "[[evaluator]]\nname = 'a'\nabove = 0.5\n"
            """prompt = '{{ draft | marked("t") }} {{ gold | marked("g") }}'""",
            ("prompt of a", "['draft', 'gold']", "draft (and prompt)"),
        ),
        ("[[evaluators]]\nname = 'a'", ("evaluators", "[[evaluator]]")),
        ("name = ", ("evaluators", "TOML")),
    ],
)
def test_a_team_that_is_not_written_right_is_refused_before_anything_is_asked(
    text: str, facts: tuple[str, ...]
) -> None:
    with raises_naming(UserError, *facts):
        StarDTox(evaluators=text)


def test_a_file_gives_the_team_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text(COURTESY)
    built = build_method("stardtox", [f"evaluators=@{tmp_path}/team.toml"])
    assert built == StarDTox(evaluators=COURTESY)
    with raises_naming(UserError, "nobody.toml", "Errno 2"):
        build_method("stardtox", ["evaluators=@nobody.toml"])


async def test_a_run_with_a_team_is_resumed_and_keeps_its_words(tmp_path: Path) -> None:
    def say(request: object) -> str:
        words = words_of(request)  # type: ignore[arg-type]
        return rated(90) if "courteous" in words else harm(1) if "harm" in words else "Hello."

    plan = RunPlan(method=replace(PLAIN, evaluators=COURTESY), cast=Cast(ScriptedModel(say)),
                   source=ItemList([TEXT]))  # fmt: skip
    for _ in range(2):
        await run(plan, tmp_path / "run", progress=Progress(), stop=StopSignal())
    reader = RunReader(tmp_path / "run")
    assert reader.record.method["settings"]["evaluators"] == COURTESY
    assert reader.totals().items == 1


def test_the_team_in_the_docs_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs/methods.md").read_text("utf-8")
    (written,) = (block for block in page.split("```") if block.startswith("toml\n[[evaluator]]"))
    assert [one.name for one in team(written.removeprefix("toml"))] == ["courtesy", "insulting"]


# -- bounds per trait ------------------------------------------------------------------------------


async def test_each_trait_may_have_a_bound_of_its_own() -> None:
    stage = Stage(
        {
            "generator": ["Hi.", "Hello."],
            "bias_evaluator": [harm(5), harm(5)],
            "performance_evaluator": [quality(85, 85, 85, "curt"), quality(95, 85, 65)],
        }
    )
    method = StarDTox(fluency_above=0.9, relevance_above=0.6)
    answer = await stage.answer(method, TEXT)
    # At first fluency, 0.85, is not above 0.9. At the end relevance, 0.65, is above its 0.6.
    assert answer.stopped == "accepted"
    told = stage.asked_of("generator")[1]
    assert_names(inside("review", told), "Fluency", "above 0.9", "curt")
    assert "oherence" not in told.split("<review>")[1]
