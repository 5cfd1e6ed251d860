"""What is said of a run's judges before it begins, and the command that certifies one."""

import shlex
import sys

from rich.text import Text

from evenhand.agents import Cast
from evenhand.cli.screen import err
from evenhand.config import Config
from evenhand.errors import UserError
from evenhand.experiments.certificates import JudgeInCast, certificates_of
from evenhand.methods import Method
from evenhand.report.judge_certificate import Found

_KEPT = ("--config", "--base-url")  # of what was typed: where the judge is


def look_at_judges(method: Method, cast: Cast, settings: Config, *, require: bool) -> None:
    """Say the state of each judge's certificate, one line each; refuse where one is required and
    does not pass. Nothing has been asked yet."""
    folder = settings.judges.certificates if settings.judges else None
    judges = certificates_of(method, cast, folder)
    for judge, found in judges:
        style = "dim" if found.passes else "yellow"
        line = Text(f"judge {judge.role} = {judge.model}: {found.says}", style=style)
        err.print(line, soft_wrap=True)
    refused = [(judge, found) for judge, found in judges if not found.passes]
    if require and refused:
        raise UserError(_refusal(*refused[0], settings))


def _refusal(judge: JudgeInCast, found: Found, settings: Config) -> str:
    run = "Run:"
    if found.certificate is not None:
        run = "Give the role to another model under [cast] in the config, or audit this one again:"
    if settings.judges is None:
        run = 'Write certificates = "certificates" under [judges] in the config file, then run:'
    # The command has a line of its own, to be copied whole.
    said = f"{judge.role} is played by {judge.model!r}: {found.says}. Nothing was asked."
    return f"{said} {run}\n{_command(judge, settings)}"


def _command(judge: JudgeInCast, settings: Config) -> str:
    words = ["evenhand", "judge-check"]
    for option in _KEPT:
        words += _typed(option)
    name = settings.cast.get(judge.role, "default")  # in [models] of the config
    if judge.within_scorer or name == "default":
        words += ["--model", judge.model]
    else:
        words += ["--judge", name]
    place = "".join(c if c.isalnum() or c in "._-" else "-" for c in judge.model)
    return shlex.join([*words, "--out", f"runs/judge-{place}"])


def _typed(option: str) -> list[str]:
    for place, word in enumerate(sys.argv):
        if word == option and place + 1 < len(sys.argv):
            return [option, sys.argv[place + 1]]
        if word.startswith(f"{option}="):
            return [word]
    return []
