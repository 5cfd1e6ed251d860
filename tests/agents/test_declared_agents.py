"""An agent says what its reply is used for, and nobody asks an agent that was not declared."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evenhand import aio
from evenhand.agents import Agent, Ask, Cast, FreeText, Reply, YesNo
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item, registry
from evenhand.core.errors import UserError
from evenhand.experiments.certificates import (
    certificates_of,
    expected_of_judge,
    judges_of,
)
from evenhand.methods import Mabrf, Method, Rate, StarDTox, named
from evenhand.methods import settings as settings_of
from evenhand.methods.baselines.single_prompt import PLAIN_TEXT
from evenhand.methods.shared_settings import OTHER_CRITIQUE
from evenhand.methods.stardtox import Harm
from evenhand.models import ScriptedModel
from evenhand.scorers import ScorerModel, WordList
from evenhand.scorers.judge import Guard, Judge
from evenhand.training.debates.debate import Debate
from evenhand.training.rating.judges import RateText
from tests.errors import raises_naming
from tests.stage import TEXT, Stage, harm

PROMPT = load("stardtox/judge_text")
WRITER = Agent("writer", PLAIN_TEXT, FreeText)
CRITIC = Agent("critic", PROMPT, Harm, kind="judge")
MODEL = ScriptedModel(lambda _: "fine", name="m")


class Stop(Reply):
    stop: bool


class Nested(Reply):
    marks: list[Harm]


class Named(Reply):
    views: list[str]


@pytest.mark.parametrize("reply", [Harm, Stop, Nested, YesNo])
def test_a_reply_that_can_be_a_verdict_must_say_what_it_is_used_for(reply: type[Reply]) -> None:
    with raises_naming(UserError, "'critic'", reply.__name__, 'kind="judge"'):
        Agent("critic", PROMPT, reply)
    assert Agent("critic", PROMPT, reply, kind="judge").judges
    assert not Agent("critic", PROMPT, reply, kind="writer").judges


@pytest.mark.parametrize("reply", [FreeText, Named])
def test_words_alone_come_from_a_writer(reply: type[Reply]) -> None:
    agent = Agent("anybody", PROMPT, reply)
    assert (agent.kind, agent.judges, agent.needs_player) == ("writer", False, False)
    assert replace(agent, role="other") == Agent("other", PROMPT, reply, kind="writer")


# -- nobody asks whom they did not declare ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hiding:
    """A method of somebody else, whose judge is not on its list as it is asked."""

    name: ClassVar[str] = "hiding"
    listed: Agent[Any]

    def agents(self) -> tuple[Agent[Any], ...]:
        return WRITER, self.listed

    async def answer(self, item: Item, ask: Ask) -> Answer:
        draft = (await ask(WRITER, prompt=item.prompt)).text
        verdict = await ask(CRITIC, prompt=item.prompt, draft=draft)
        return Answer(drafts=(Draft(text=draft, scores={"harm": verdict.harm}),), stopped="x")


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(WRITER, id="not at all"),
        pytest.param(replace(CRITIC, role="writer"), id="under another role"),
        pytest.param(replace(CRITIC, kind="writer"), id="as a writer"),
        pytest.param(replace(CRITIC, prompt=PLAIN_TEXT), id="with another prompt"),
    ],
)
async def test_a_judge_that_is_not_declared_as_it_is_asked_is_refused(listed: Agent[Any]) -> None:
    stage = Stage({"writer": ["fine"], "critic": []})
    with raises_naming(UserError, "'critic'", "judge", "agents()"):
        await stage.end_of(Hiding(listed), TEXT)
    with raises_naming(UserError, "'critic'", "judge", "agents()"):
        await aio.answer("Describe a nurse.", model=MODEL, method=Hiding(listed))
    assert stage.order == ["writer"]


async def test_a_declared_judge_is_asked() -> None:
    stage = Stage({"writer": ["fine"], "critic": [harm(7)]})
    assert (await stage.answer(Hiding(CRITIC), TEXT)).drafts[0].scores == {"harm": 7}


# -- who is a judge --------------------------------------------------------------------------------


def judging(method: Method, **roles: Any) -> list[tuple[str, str]]:
    return [(judge.role, judge.model) for judge in judges_of(method, Cast(MODEL, roles))]


@pytest.mark.parametrize(
    ("kind", "role"), [(Debate, "referee"), (Mabrf, "judge"), (RateText, "rater")]
)
@pytest.mark.parametrize("read", ["json", "logprob"])
def test_a_verdict_in_json_and_one_in_a_digit_are_of_a_judge(
    kind: Any, role: str, read: str
) -> None:
    (judge,) = judges_of(kind(read=read), Cast(MODEL))
    assert (judge.role, judge.model, judge.by_logprob) == (role, "m", read == "logprob")


def test_a_judge_of_somebody_elses_method_is_found_under_any_name() -> None:
    assert judging(Hiding(CRITIC)) == [("critic", "m")]


def test_a_program_that_scores_is_no_judge_but_a_language_model_behind_it_is() -> None:
    rule = StarDTox(bias_brain="rule", performance=False)
    on_choices = ("bias_evaluator", "m")
    asked = ScriptedModel(lambda _: "", name="inside")
    assert judging(rule, scorer=ScorerModel(WordList())) == [on_choices]
    assert judging(rule, scorer=ScorerModel(Guard(asked, form="llama_guard"))) == [on_choices]
    judged = judging(rule, scorer=ScorerModel(Judge(asked)))
    assert judged == [("scorer", "inside"), on_choices]
    assert judging(rule, scorer=asked) == judged  # a language model as the scorer itself


def test_a_judge_that_is_read_by_log_probabilities_needs_an_audit_that_read_it_so(
    tmp_path: Path,
) -> None:
    by_json = settings_of(Rate())
    read, inside = StarDTox(read="logprob"), ScriptedModel(lambda _: "", name="inside")
    rule = StarDTox(bias_brain="rule", performance=False)
    scorer = ScorerModel(Judge(inside, read="logprob"))
    for found in (
        dict(certificates_of(read, Cast(MODEL), tmp_path)),
        dict(certificates_of(rule, Cast(MODEL, {"scorer": scorer}), tmp_path)),
    ):
        [judge] = [judge for judge in found if judge.by_logprob]
        wanted = expected_of_judge(None, judge, judge.model)
        assert found[judge].certificate is None
        assert wanted.method == {"name": "rate", "settings": {**by_json, "read": "logprob"}}
    assert not any(judge.by_logprob for judge in judges_of(rule, Cast(MODEL)))


def test_a_scorer_that_nobody_plays_is_not_left_to_the_default_model() -> None:
    rule = StarDTox(bias_brain="rule")
    with raises_naming(UserError, "'scorer'", "ScorerModel(WordList())"):
        Stage({}).plan(rule, TEXT)


def test_no_method_has_a_role_that_is_both_a_tool_and_not() -> None:
    for method in (*map(named, registry.names("methods")), Debate):
        agents = (*method().agents(), OTHER_CRITIQUE)
        tools = {agent.role for agent in agents if agent.needs_player}
        assert not tools & {agent.role for agent in agents if not agent.needs_player}
