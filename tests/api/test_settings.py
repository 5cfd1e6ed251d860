"""A setting is declared once: the command line, Python, the request and the record have it."""

import inspect
import json
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

import evenhand as eh
from evenhand.agents import Limits
from evenhand.api.inputs import request_of, settings_of
from evenhand.cli.app import load
from evenhand.cli.options import RunCommand, with_run_options
from evenhand.experiments.request import Request, Watch
from evenhand.experiments.running import execute
from evenhand.experiments.settings import (
    RunOptions,
    RunSettings,
    declared_in,
    python_parameters,
    setting,
    settings_from,
)
from evenhand.methods import DefaultPrompt
from evenhand.runs.runners import ItemList
from tests.errors import raises_naming


@dataclass(frozen=True, slots=True, kw_only=True)
class WithRounds(RunSettings):
    """The settings, and one more, which is declared here and nowhere else."""

    rounds: int = setting(3, help="How often.", least=1)


def _options(command: Any) -> dict[str, Any]:
    return {str(option.name): option for option in command.params}


async def test_a_setting_that_is_added_in_one_place_is_in_all_four(tmp_path: Path) -> None:
    typed: list[RunSettings] = []

    def command(options: RunCommand) -> None:
        typed.append(options.settings)

    app = typer.Typer()
    app.command()(with_run_options(command, kind=WithRounds))
    made = typer.main.get_command(app)
    option = _options(made)["rounds"]
    assert (option.opts, option.default) == (["--rounds"], 3)
    ran = CliRunner().invoke(app, ["--out", "run", "--rounds", "0"])
    assert ran.exit_code == 2  # less than the least
    made(["--out", str(tmp_path / "run"), "--rounds", "5"], standalone_mode=False)
    assert typed == [WithRounds(out=str(tmp_path / "run"), rounds=5)]

    parameters = {entry.name: entry for entry in python_parameters(WithRounds)}
    assert (parameters["rounds"].default, parameters["rounds"].annotation) == (3, int)
    given = settings_from({"out": "run", "rounds": 4}, WithRounds, read={})
    assert given == WithRounds(out="run", rounds=4)

    items, model = ItemList([eh.Item(id="0", prompt="Hello.")]), eh.ScriptedModel(lambda _: "Hi.")
    request = request_of(items, DefaultPrompt(), typed[0], model=model)
    assert isinstance(request, Request)
    assert request.settings == typed[0]
    await execute(request, Watch())
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["settings"]["rounds"] == 5


def test_params_are_the_same_typed_and_in_python() -> None:
    typed: list[RunSettings] = []

    def command(options: RunCommand) -> None:
        typed.append(options.settings)

    app = typer.Typer()
    app.command()(with_run_options(command))
    words = ["--param", "top_p=0.5", "--param", "seed=null", "--param", "effort=low"]
    for args in (words, []):
        typer.main.get_command(app)(["--out", "run", *args], standalone_mode=False)
    params = {"top_p": 0.5, "seed": None, "effort": "low"}
    assert typed == [settings_of({"out": "run", "params": params}), settings_of({"out": "run"})]


def _alternatives(kind: Any) -> set[Any]:
    return set(get_args(kind)) if isinstance(kind, UnionType) else {kind}


def test_the_arguments_that_a_type_checker_knows_are_the_settings_of_python() -> None:
    known, declared = get_type_hints(RunOptions), get_type_hints(RunSettings)
    in_python = [entry.name for entry, made in declared_in(RunSettings) if made.in_python]
    assert sorted(known) == sorted(in_python)
    for name, kind in known.items():
        assert _alternatives(declared[name]) <= _alternatives(kind), name


@pytest.mark.parametrize("name", ["forecast", "frontier", "measure", "mitigate"])
def test_a_function_that_runs_something_shows_every_setting(name: str) -> None:
    shown = inspect.signature(getattr(eh, name)).parameters
    assert {*list(shown)[-len(RunOptions.__annotations__) :]} == RunOptions.__annotations__.keys()
    assert shown["concurrency"].default == 64
    assert shown["out"].default is inspect.Parameter.empty


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("mitigate", set()),
        ("frontier", {"replay"}),
        ("overcorrection", {"dry_run", "pilot", "replay"}),
        ("counterfactual", set()),
    ],
)
def test_a_command_has_every_setting_but_those_that_it_cannot_take(
    command: str, without: set[str]
) -> None:
    options = _options(load(command))
    offered = {entry.name for entry, made in declared_in(RunSettings) if made.flags is not None}
    assert offered - options.keys() == without


def test_the_longest_reply_is_one_of_the_limits() -> None:
    settings = RunSettings(out="run", limits=Limits(calls=3), max_tokens=99)
    assert settings.limits == Limits(calls=3, max_tokens=99)


def test_the_record_says_how_a_run_was_begun_but_not_where_nor_what_is_secret() -> None:
    recorded = RunSettings(out="run", max_calls=7).record()
    assert recorded["max_calls"] == 7
    assert not {"out", "prices", "certificates", "system", "replay"} & recorded.keys()
    assert recorded.keys() <= {entry.name for entry in fields(RunSettings)}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"out": "run", "per_category": 4}, "per_category"),  # of an instrument
        ({"out": "run", "pilot": 4}, "pilot"),  # that is `forecast`
        ({}, "out"),
    ],
)
def test_what_is_no_setting_or_misses_one_is_refused_by_its_name(
    values: dict[str, Any], code: str
) -> None:
    with raises_naming(eh.UserError, f"'{code}'"):
        settings_of(values)
