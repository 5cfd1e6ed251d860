"""Scenarios: what an outcome is read from, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand.api.installation import write
from evenhand.core.errors import UserError
from evenhand.instruments.actions.answers import action_in
from evenhand.instruments.actions.instrument import ActionOptions, Actions
from evenhand.instruments.actions.scenario import (
    ActionOutcome,
    read_scenario,
    scenario_names,
)
from evenhand.instruments.counterfactual.families import families
from evenhand.instruments.counterfactual.versions import designed_of

CHOICE = ActionOutcome(kind="choice", at="advance", favorable="yes", choices=("yes", "no"))
SCORE = ActionOutcome(kind="number", at="score", least=0, most=100)
LEVEL = ActionOutcome(kind="level", at="a.b", levels=("low", "normal", "high"))
TOOL = ActionOutcome(kind="tool", tool="invite")
MINUTES = ActionOutcome(kind="number", tool="invite", at="minutes", least=10, most=60)
CALLED = {"tool_calls": [{"name": "invite", "arguments": {"minutes": 35}}]}


@pytest.mark.parametrize(("outcome", "answer", "share"), [
    (CHOICE, {"advance": True}, 1.0), (CHOICE, {"advance": " No"}, 0.0),
    (CHOICE, {"advance": "perhaps"}, None), (CHOICE, {"advance": 1}, None), (CHOICE, "yes", None),
    (SCORE, {"score": 40}, 0.4), (SCORE, {"score": 101}, None), (SCORE, {"score": True}, None),
    (LEVEL, {"a": {"b": "Normal"}}, 0.5), (LEVEL, {"a": "normal"}, None),
    (TOOL, CALLED, 1.0), (TOOL, {"tool_calls": []}, 0.0), (TOOL, {"advance": True}, None),
    (MINUTES, CALLED, 0.5), (MINUTES, {"tool_calls": []}, None),
    (MINUTES, {"tool_calls": [{"function": {"name": "invite", "arguments": '{"minutes": 60}'}}]},
     1.0),
])  # fmt: skip
def test_an_outcome_is_read_as_a_share_or_is_missing(
    outcome: ActionOutcome, answer: Any, share: float | None
) -> None:
    assert outcome.share(answer) == share


def test_a_declared_tool_that_is_not_called_is_known_not_to_be() -> None:
    stored = '[{"id":"1","type":"function","function":{"name":"invite","arguments":"{}"}}]'
    assert TOOL.share(action_in("No.", None, tools_declared=True)) == 0.0
    assert TOOL.share(action_in("No.", None, tools_declared=False)) is None
    assert TOOL.share(action_in("invite {}", stored, tools_declared=True)) == 1.0
    assert TOOL.share(action_in(None, None, tools_declared=True)) is None


@pytest.mark.parametrize("name", scenario_names())
def test_every_ready_scenario_has_all_versions_of_its_20_profiles(name: str) -> None:
    """A profile has 5 versions by gender and 9 by race: none, and each group with its placebo."""
    scenario = read_scenario(name)
    design = designed_of(scenario.prompts(), ActionOptions(scenario=name))
    assert (len(design.asked), design.refused, design.never_without) == (20 * (5 + 9), (), ())
    assert len(scenario.outcomes) == 3
    assert all("{" not in version.messages[1].texts()[0] for version in design.asked)


def test_a_new_scenario_is_read_as_it_is(tmp_path: Path) -> None:
    file = write("scenario", "my_course", tmp_path)
    scenario = read_scenario(str(file))
    assert (file.name, scenario.title) == ("my_course.toml", "My course")
    assert {outcome.kind for outcome in scenario.outcomes.values()} == {"choice", "number", "tool"}
    with pytest.raises(UserError):
        write("scenario", "my_course", tmp_path)


@pytest.mark.parametrize("line", [
    "kind = 'choice'\nat = 'x'", "kind = 'number'\nat = 'x'\nleast = 1\nmost = 1",
    "kind = 'level'\nat = 'x'\nlevels = ['a']", "kind = 'tool'", "kind = 'vote'",
    "kind = 'choice'\nat = 'x'\nfavorable = 'yes'\nchoices = ['a']",
])  # fmt: skip
def test_an_outcome_that_cannot_be_read_is_refused(line: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"title = 's'\n[outcomes.x]\n{line}\n")
    with pytest.raises(UserError, match=r"outcomes\.x"):
        read_scenario(str(file))


def test_an_unknown_scenario_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match="Did you mean 'hiring'"):
        read_scenario("hirng")


LINE = '{"id": "p%d", "family": "f", "label": "%s", "role": "%s", "answer": {"score": 1}}'


@pytest.mark.parametrize("lines", [
    [], [LINE % (1, "a", "group"), LINE % (1, "b", "group")],
    [LINE % (n, "a", "group") for n in (1, 2)],
    [LINE % (n, label, "group") for n in (1, 2, 2) for label in "ab"],
    [LINE % (n, label, "group") for n in (1, 2) for label in "ab"][:3],
])  # fmt: skip
def test_recorded_answers_with_a_hole_are_refused(lines: list[str], tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(UserError):
        Actions().source(None, ActionOptions(answers=file))  # type: ignore[arg-type]


async def test_a_scripted_agent_is_asked_every_version_and_its_bias_is_detected(
    tmp_path: Path,
) -> None:
    """The agent advances men alone: it reads nothing but the name."""
    options = {"scenario": "hiring", "attributes": "gender"}
    report = await eh.aio.measure(
        "actions", model=f"python:{__name__}:advances_men", out=tmp_path / "run",
        options=options,
    )  # fmt: skip
    assert (report.coverage.n, report.coverage.scored) == (100, 100)
    assert report["difference.advance.gender.woman"].value == -1.0
    assert report["difference.score.gender.woman"].value == 0.0
    assert report.verdict.state == "detected"


def advances_men(request: dict[str, Any]) -> dict[str, Any]:
    (gender,) = families(("gender",), None)
    men = next(label.forms["name"] for label in gender.labels if label.name == "man")
    words = request["messages"][-1]["content"]
    return {"advance": any(f" {name}." in words for name in men), "score": 50, "tool_calls": []}
