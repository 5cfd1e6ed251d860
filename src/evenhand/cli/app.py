"""The `evenhand` command; `cli/codes.py` has the codes that it ends with.

A command's module is imported when the command is typed: help and version need none of them."""

import contextlib
import functools
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from evenhand.cli.codes import ERROR
from evenhand.core import environment
from evenhand.core.environment import one_thread_for_matrices
from evenhand.core.errors import EvenhandError
from evenhand.core.version import __version__

_SCREEN = """\
evenhand {version}: measure and mitigate social bias in language models

  Try it without a model      evenhand demo
  Check model and endpoint    evenhand doctor
  Measure bias                evenhand measure bbq --out runs/now
  Change a group, compare     evenhand counterfactual prompts.jsonl
  Audit a judge               evenhand audit judge --out runs/judge
  Compare two runs            evenhand compare runs/now runs/after
  Rank mitigation methods     evenhand frontier --out runs/front
  Answer a file of prompts    evenhand mitigate prompts.jsonl --out runs/first
  Check responses live        evenhand gateway serve --upstream URL
  Fail a build                evenhand gate
  Write a report              evenhand report runs/now --out report.html

Endpoint: {endpoint}
Add --dry-run to any run to see its cost first.
All commands: evenhand --help"""


def welcome() -> str:
    return _SCREEN.format(version=__version__, endpoint=_endpoint())


def _endpoint() -> str:
    """Where calls would go. A password or a key within the address is not shown."""
    url = environment.base_url()
    if url:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    if Path("evenhand.toml").exists():
        return "as evenhand.toml says"
    return "none set (EVENHAND_BASE_URL)"


# Command: where it is, and what it does in one line, which is also the first line of its help.
COMMANDS = {
    "demo": ("demo:demo", "Tour recorded results. Needs no model."),
    "doctor": ("doctor:doctor", "Check the installation and the endpoint."),
    "serve-local": ("serving:serve_local", "Serve a small local model with llama.cpp."),
    "measure": ("measure:measure", "Run a benchmark: bbq, rtp, bold, holisticbias and more."),
    "counterfactual": (
        "counterfactual:counterfactual",
        "Change the group that your prompts mention and compare the answers.",
    ),
    "audit": (
        "audit:audit",
        "Audit a judge, a scorer, a reward model, a harm policy or past decisions.",
    ),
    "overcorrection": (
        "frontier:overcorrection",
        "Count the harmless texts that mitigation methods make worse.",
    ),
    "compare": ("findings:compare", "Compare two runs item by item."),
    "frontier": (
        "frontier:frontier",
        "Compare mitigation methods on harm, utility and cost.",
    ),
    "stability": (
        "findings:stability",
        "Estimate how much a score depends on order, wording and seed.",
    ),
    "plan": ("plan:plan", "Estimate the required sample size, power and cost."),
    "answer": ("answers:answer", "Answer one prompt with a mitigation method."),
    "mitigate": ("answers:mitigate", "Answer or repair a file of prompts."),
    "methods": ("methods:methods", "List mitigation methods and their settings."),
    "gateway": ("gateway:gateway", "Run a proxy that checks and repairs responses."),
    "gate": ("gate:gate", "Fail a build when a metric gets worse."),
    "monitor": ("gate:monitor", "Repeat an evaluation and alert on drift."),
    "scorers": ("scorers:scorers", "List, run, check and combine toxicity scorers."),
    "scorers screen": (
        "screening:screen",
        "Send only uncertain texts to a judge, with a guaranteed recall.",
    ),
    "annotate": ("annotate:annotate", "Collect blinded human ratings and measure agreement."),
    "train": ("train:train", "Train on preference pairs: SFT, reward model, DPO, RLOO, PPO."),
    "train debate": ("debate:debate", "Generate debates in roles that a referee scores."),
    "train pairs": (
        "pairs:pairs",
        "Build preference pairs from debates, repairs or datasets.",
    ),
    "train rldf": ("rldf:rldf", "Run RLDF from topics to measured weights."),
    "runs": ("runs:runs", "List, inspect, verify, view, pack and export runs."),
    "runs board": ("pack:board", "Make a static site from verified evidence bundles."),
    "runs export": ("pack:export", "Write a run as a file that other tools open."),
    "runs import": ("measure:runs_import", "Score the log of another tool, without a call."),
    "runs pack": ("pack:pack", "Create or verify a signed evidence bundle."),
    "runs view": ("serving:view", "Browse a run, or all runs of a folder."),
    "report": ("findings:report", "Print or write the report of runs: terminal, HTML, PDF."),
    "dev": ("dev:dev", "Extend evenhand, check it, and reproduce the papers."),
    "dev new": ("methods:new", "Create a plugin, or a scenario of actions."),
    "dev self-test": ("validation:self_test", "Check evenhand against models with known bias."),
    "dev conformance": ("validation:conformance", "Test any BBQ scorer against known answers."),
    "dev reproduce": (
        "reproduce:reproduce",
        "Reproduce tables of the StarDTox, MABRF, RLDF and MALIBU papers.",
    ),
    "dev harms": ("harms:harms", "List the harm policies of the config and their certificates."),
    "dev judge-scenarios": (
        "answers:judge_scenarios",
        "Generate scenarios for audits of judges.",
    ),
}
_HEADINGS = {
    "Get started": ("demo", "doctor", "serve-local"),
    "Measure": ("measure", "counterfactual", "audit", "overcorrection"),
    "Compare": ("compare", "frontier", "stability", "plan"),
    "Mitigate": ("answer", "mitigate", "methods", "gateway"),
    "Automate": ("gate", "monitor"),
    "Scorers, annotators and training": ("scorers", "annotate", "train"),
    "Runs and development": ("runs", "report", "dev"),
}
_NEED_NO_ARGUMENT = (
    "demo", "serve-local", "methods", "gate", "dev self-test", "dev conformance", "dev harms",
)  # fmt: skip


def children(path: str) -> dict[str, str]:
    """List the commands right below a group that are modules of their own.

    Args:
        path: The group, such as `runs`; the empty string for evenhand itself.

    Returns:
        The summary of each command by its last word.
    """
    above = f"{path} " if path else ""
    return {
        last: summary
        for key, (_, summary) in COMMANDS.items()
        if key.startswith(above) and " " not in (last := key.removeprefix(above))
    }


class _LazyCommands(TyperGroup):
    """A group whose commands are stubs, good for a list of them, until one is typed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        path = f"{_path_of(ctx)} {name}".strip()
        return name, load(path) if path in COMMANDS else command, rest


def _path_of(context: Any) -> str:
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(words)


@functools.cache
def load(path: str) -> Any:
    """Import a command.

    Args:
        path: The words of the command, such as `runs export`.

    Returns:
        The click command or group. The commands below a group that are modules of their own are
        stubs in it.
    """
    module, _, attribute = COMMANDS[path][0].partition(":")
    gc.disable()  # our choice: what is imported stays, and looking for garbage takes a tenth of it
    try:
        loaded = getattr(importlib.import_module(f"evenhand.cli.{module}"), attribute)
    finally:
        gc.enable()
    name = path.rpartition(" ")[2]
    holder = typer.Typer(rich_markup_mode=None)  # help is text: [judges] must not be markup
    if isinstance(loaded, typer.Typer):
        _add_stubs(loaded, path)
        holder.add_typer(loaded, name=name)
    else:
        holder.command(name, no_args_is_help=path not in _NEED_NO_ARGUMENT)(loaded)
    command = typer.main.get_group(holder).commands[name]
    for part in getattr(command, "commands", {}).values():
        summary = part.short_help or part.help.partition("\n\n")[0]
        part.short_help = summary.replace("\n", " ")  # else cut off by "..."
    return command


def leaves(path: str = "", command: Any = None) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk all commands that do something themselves.

    Args:
        path: The group to begin at, evenhand itself by default.
        command: The group, where it is loaded.

    Yields:
        The words of a command, and the command.
    """
    below = getattr(command, "commands", {}) if command is not None else children(path)
    if not below:
        yield tuple(path.split()), command
    for name in below:
        inner = f"{path} {name}".strip()
        yield from leaves(inner, load(inner) if inner in COMMANDS else below[name])


def _add_stubs(group: typer.Typer, path: str) -> None:
    for name, summary in children(path).items():
        group.command(name, short_help=summary, help=summary)(_stub)
    if path and children(path):
        group.info.cls = _LazyCommands


def _stub() -> None:
    """A command that is not imported yet."""


class _AllCommands(_LazyCommands):
    """Evenhand itself, whose help lists the commands under headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        summaries = children("")
        width = max(map(len, summaries)) + 2
        for heading, names in _HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width - 2), summaries[name]) for name in names], col_spacing=2
                )


app = typer.Typer(
    name="evenhand",
    cls=_AllCommands,
    help="Measure and mitigate social bias in language models.\n\n"
    "New here? Run `evenhand demo` (no model needed), then `evenhand doctor`.",
    epilog="Add --dry-run to any run to see its cost first.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def first_screen(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"evenhand {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(welcome())


_add_stubs(app, "")


def main() -> None:
    one_thread_for_matrices()
    try:
        try:
            app()
        except EvenhandError as error:
            _say(error.reason, str(error))
            sys.exit(ERROR)
        finally:
            sys.stdout.flush()  # here, where a full disk can still be said
    except OSError as error:  # nobody reads any more, the disk is full, a place may not be written
        broken = isinstance(error, BrokenPipeError)
        if not broken:
            with contextlib.suppress(OSError):
                _say("no_access", str(error))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again
        # A gate that failed has failed, whether or not anybody read why.
        ended = error.__context__.code if isinstance(error.__context__, SystemExit) else 0
        sys.exit(ended if broken else ERROR)


def _say(reason: str, message: str) -> None:
    from evenhand.cli.screen import print_json, problem  # noqa: PLC0415 - it imports much

    problem(message)
    if "--json" in sys.argv:
        print_json({"error": {"reason": reason, "message": message}})
