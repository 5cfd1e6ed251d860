"""The system prompt of the model under test: who gets it, and where it is kept."""

from pathlib import Path

import pytest

import evenhand as eh
from evenhand.experiments import config as configuration
from evenhand.experiments.dry_run import dry_run
from evenhand.experiments.request import Request
from evenhand.experiments.settings import RunSettings
from evenhand.methods import DefaultPrompt, StarDTox
from evenhand.methods.baselines.self_debiasing import SelfDebiasGen
from evenhand.models.base import ModelReply, ModelRequest
from evenhand.runs.runners import ItemList
from evenhand.runs.store import RunReader
from evenhand.testing import any_reply
from tests.api.titles import Titles
from tests.errors import raises_naming

SHOP = "You are the assistant of a shop. Treat everybody alike."
LONG = "Be brief. " * 20


class Listening(eh.ScriptedModel):
    """A model that keeps what it was asked."""

    def __init__(self, name: str = "scripted") -> None:
        super().__init__(any_reply, name=name)
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return await super().complete(request)


def _got(request: ModelRequest) -> bool:
    first, *others = request.messages
    assert all(SHOP not in one.content for one in others)
    return first.role == "system" and first.content.startswith(SHOP)


def _only_writers_got_it(run: Path, agents: dict[str, bool]) -> None:
    """Hold each turn against the kind of the agent that has its prompt."""
    turns = RunReader(run).turns().collect()
    seen = set()
    for prompt, messages in turns.select("prompt", "messages").iter_rows():
        assert (messages[0]["role"] == "system" and messages[0]["content"].startswith(SHOP)) is (
            agents[prompt]
        )
        seen.add(agents[prompt])
    assert seen == {True, False}


def test_every_agent_that_writes_gets_it_first_and_no_judge_does(tmp_path: Path) -> None:
    model, out = Listening(), tmp_path / "run"
    eh.mitigate(["Describe a nurse.", "Describe a boss."], model=model, out=out, system=SHOP)
    kinds = {one.prompt.label: one.kind == "writer" for one in StarDTox().agents()}
    _only_writers_got_it(out, kinds)
    turns = RunReader(out).turns().collect()
    assert sum(map(_got, model.asked)) == sum(kinds[one] for one in turns["prompt"])  # on the wire


def test_an_agent_with_a_system_message_of_its_own_keeps_it_behind_in_one_message() -> None:
    model = Listening()
    eh.answer("Describe a nurse.", model=model, method="fairness", system=SHOP)
    plain = Listening()
    eh.answer("Describe a nurse.", model=plain, method="fairness")
    (asked,), (before,) = (one.asked for one in (model, plain))
    roles = [message.role for message in asked.messages]
    assert roles.count("system") == 1
    own = [message.content for message in before.messages if message.role == "system"]
    assert asked.messages[0].content == "\n\n".join((SHOP, *own))
    assert asked.messages[-1] == before.messages[-1]


def test_a_model_that_the_cast_gives_a_role_has_no_part_in_it(tmp_path: Path) -> None:
    judge, model = Listening("judge"), Listening()
    cast = eh.Cast(model, {"bias_evaluator": judge, "performance_evaluator": judge})
    eh.mitigate(["Describe a nurse."], model=cast, out=tmp_path / "run", system=SHOP)
    assert judge.asked
    assert not any(map(_got, judge.asked))
    assert any(map(_got, model.asked))
    kept = eh.open_run(tmp_path / "run").record.cast
    assert kept["generator"]["system"] == SHOP
    assert "system" not in kept["bias_evaluator"]
    assert "system" not in kept["default"]


def _measured(out: Path, system: str | None, model: eh.ScriptedModel | None = None) -> eh.Report:
    return eh.measure(Titles(), model=model or Listening(), out=out, system=system)


def test_the_report_names_it_and_a_comparison_says_that_it_differs(tmp_path: Path) -> None:
    before, after = _measured(tmp_path / "a", None), _measured(tmp_path / "b", SHOP)
    assert (before.side.system, after.side.system) == ("", SHOP)
    assert (before.to_dict()["system"], after.to_dict()["system"]) == (None, SHOP)
    assert SHOP in str(after._repr_html_())
    (differs,) = eh.compare(before, after).differ
    assert (differs.part, differs.setting.split()[-1]) == ("cast", "generator")
    assert (differs.before, differs.after) == ("not set", f'"{SHOP}"')


def test_two_long_ones_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    runs = [_measured(tmp_path / name, LONG + name) for name in ("a", "b")]
    (differs,) = eh.compare(*runs).differ
    assert differs.before != differs.after


def test_a_folder_of_another_system_prompt_is_refused_finished_or_not(tmp_path: Path) -> None:
    _measured(tmp_path / "run", SHOP)
    for other in (None, "Another."):
        with raises_naming(eh.UserError, tmp_path / "run", "of generator", "a shop.", "--out"):
            _measured(tmp_path / "run", other)
    again = Listening()
    _measured(tmp_path / "run", SHOP, again)
    assert not again.asked


def test_a_replay_has_the_recorded_one_and_takes_no_other(tmp_path: Path) -> None:
    first = _measured(tmp_path / "run", SHOP)
    again = eh.measure(Titles(), out=tmp_path / "again", replay=tmp_path / "run")
    assert again["guessed"] == first["guessed"]
    assert again.side.system == SHOP
    with raises_naming(eh.UserError, tmp_path / "run", "system prompt"):
        eh.measure(Titles(), out=tmp_path / "no", replay=tmp_path / "run", system="Another.")


def test_one_that_nobody_would_get_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    model = Listening()
    with raises_naming(eh.UserError, "default model", "always_unknown"):
        eh.mitigate(
            ["Hello."], model=model, out=tmp_path / "a", method="always_unknown", system=SHOP
        )
    writer = eh.Cast(model, {"generator": model})  # given to the role, not to the default model
    with raises_naming(eh.UserError, "default model", "run of default"):
        eh.mitigate(["Hello."], model=writer, out=tmp_path / "b", method="default", system=SHOP)
    with raises_naming(eh.UserError, "self_debias_gen", "system prompt"):
        eh.mitigate(
            ["Hello."], model=model, out=tmp_path / "c", method=SelfDebiasGen(), system=SHOP
        )
    with raises_naming(eh.UserError, "system is empty"):
        eh.mitigate(["Hello."], model=model, out=tmp_path / "d", method="default", system=" ")
    assert not model.asked


async def test_a_dry_run_counts_its_tokens() -> None:
    def request(system: str) -> Request:
        async def nobody(_: object) -> eh.Cast:
            raise AssertionError

        return Request(
            source=ItemList([eh.Item(id="0", prompt="Hello.")]),
            method=DefaultPrompt(),
            open_cast=nobody,
            settings=RunSettings(out="none"),
            systems={"default": system},
        )

    plain, long = [(await dry_run({"r": request(one)})).runs[0].prompt_tokens
                   for one in ("", "x" * 4_000)]  # fmt: skip
    assert plain is not None
    assert long is not None
    assert long[0] - plain[0] == pytest.approx(4_000 / 4, rel=0.01)


def test_a_config_gives_each_model_its_own(tmp_path: Path) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text(
        '[models.default]\nsystem = "A"\n[models.critic]\nsystem = "B"\n[models.plain]\n'
        '[roles]\nperformance_evaluator = "critic"\ncritic = "critic"\nplanner = "plain"\n'
        'scorer = "wordlist"\n'
    )
    found = configuration.load(file, None, None).systems()
    assert found == {
        "default": "A", "performance_evaluator": "B", "critic": "B", "planner": "", "scorer": "",
    }  # fmt: skip
    assert configuration.load(file, None, None, system="C").systems()["default"] == "C"
    file.write_text('[models.default]\nsystem = ""\n')
    with raises_naming(eh.UserError, "evenhand.toml", "models.default.system", 1):
        configuration.load(file, None, None)
