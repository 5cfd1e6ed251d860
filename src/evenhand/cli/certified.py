"""Before a run begins: does every judge of its cast have a certificate that holds for it?"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from evenhand.agents import Cast
from evenhand.cli.screen import err
from evenhand.config import Config
from evenhand.errors import UserError
from evenhand.instruments.judge import card
from evenhand.instruments.judge.certificate import Found, Wanted, find
from evenhand.instruments.judge.source import ONE, TWO, prompt
from evenhand.methods import Method, Panel, Rate
from evenhand.methods import settings as settings_of

# Roles whose verdict decides what happens to a text. A scorer is one where a language model plays.
JUDGING = ("judge", "bias_evaluator", "performance_evaluator", "detector")
_KEPT = ("--config", "--base-url")  # of what was typed: where the judge is


@dataclass(frozen=True, slots=True)
class _Judge:
    role: str
    model: str
    name: str | None  # in [models] of the config; None: it is the model of a scorer


def look_at_judges(method: Method, cast: Cast, settings: Config, *, require: bool) -> None:
    """Say the state of each judge's certificate, one line each; refuse where one is required and
    does not pass. Nothing has been asked yet."""
    folder = settings.judges.certificates if settings.judges else None
    refused = []
    for judge in _judges(method, cast, settings):
        found = find(folder, wanted(method, judge.model))
        style = "dim" if found.passes else "yellow"
        line = Text(f"judge {judge.role} = {judge.model}: {found.says}", style=style)
        err.print(line, soft_wrap=True)
        if not found.passes:
            refused.append((judge, found))
    if require and refused:
        raise UserError(_refusal(*refused[0], settings))


def wanted(method: Method, model: str) -> Wanted:
    """A method of several judges, or one that asks them otherwise, needs a certificate of its own;
    any other asks its judge once, as the plain audit does."""
    asked = method if isinstance(method, Rate | Panel) else Rate()
    prompts = [agent.prompt for agent in asked.agents()] + [prompt(name) for name in (ONE, TWO)]
    return Wanted(
        model=model,
        method={"name": asked.name, "settings": settings_of(asked)},
        prompts={one.label: one.sha256 for one in prompts},
        version=card()["version"],
    )


def _judges(method: Method, cast: Cast, settings: Config) -> Iterator[_Judge]:
    for role in dict.fromkeys(agent.role for agent in method.agents()):
        described = cast.model_for(role).describe()
        inside = _judge_within(described)
        if inside is not None:
            yield _Judge(role, inside, None)
        elif role in JUDGING and described.get("kind") != "scorer":
            name = settings.cast.get(role, "default")
            yield _Judge(role, cast.model_for(role).name, name)


def _judge_within(described: dict[str, Any]) -> str | None:
    """The language model that a scorer asks, if it asks one."""
    scorer = described.get("scorer", {})
    return str(scorer["model"]["model"]) if scorer.get("kind") == "judge" else None


def _refusal(judge: _Judge, found: Found, settings: Config) -> str:
    run = "Run:"
    if found.certificate is not None:
        run = "Give the role to another model under [cast] in the config, or audit this one again:"
    if settings.judges is None:
        run = 'Write certificates = "certificates" under [judges] in the config file, then run:'
    # The command has a line of its own, to be copied whole.
    said = f"{judge.role} is played by {judge.model!r}: {found.says}. Nothing was asked."
    return f"{said} {run}\n{_command(judge)}"


def _command(judge: _Judge) -> str:
    words = ["evenhand", "judge-check"]
    for option in _KEPT:
        words += _typed(option)
    if judge.name in (None, "default"):
        words += ["--model", judge.model]
    else:
        words += ["--judge", str(judge.name)]
    place = "".join(c if c.isalnum() or c in "._-" else "-" for c in judge.model)
    return shlex.join([*words, "--out", f"runs/judge-{place}"])


def _typed(option: str) -> list[str]:
    for place, word in enumerate(sys.argv):
        if word == option and place + 1 < len(sys.argv):
            return [option, sys.argv[place + 1]]
        if word.startswith(f"{option}="):
            return [word]
    return []
