"""The `evenhand` command; `cli/codes.py` has the codes that it ends with.

A command's module is imported when the command is typed: help and version need none of them."""

import contextlib
import gc
import importlib
import os
import sys
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
evenhand {version}: is a model biased, against whom, how sure, and what helps?

  Try without a model  evenhand demo
  Is it biased?        evenhand measure bbq --out runs/now
  Does a remedy help?  evenhand compare runs/now runs/after
  Which remedy?        evenhand frontier --out runs/front
  A page to hand over  evenhand report runs/now runs/after --out report.html
  Trust this judge?    evenhand audit judge --out runs/judge
  Trust the numbers?   evenhand self-test
  What will it cost?   any of these with --dry-run (asks nothing)
  Repair my answers    evenhand mitigate prompts.jsonl --out runs/first
  … on their way out   evenhand gateway --upstream URL

Start:  evenhand doctor        endpoint: {endpoint}

Also: answer  methods  plan  runs  scorers  overcorrection  debate  pairs
      train  serve-local  conformance  reliability  rate  harms
      judge-scenarios  reproduce  gate  view  pack  audit  swap  new  import
      export  watch  screen
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
    "demo": ("demo:demo", "Show what comes out, without a model."),
    "doctor": ("doctor:doctor", "Look at what is installed and at what the endpoint can do."),
    "self-test": (
        "validation:self_test",
        "Check that this machine reads models of known behaviour rightly.",
    ),
    "serve-local": ("serving:serve_local", "Serve a model on this machine with llama.cpp."),
    "answer": ("answers:answer", "Answer one prompt with a method."),
    "mitigate": ("answers:mitigate", "Answer every prompt of a file with a method."),
    "measure": ("measure:measure", "Measure a method on an instrument, or a model itself."),
    "audit": (
        "audit:audit",
        "Audit a judge, a scorer, a reward model, a harm policy, or decisions already made.",
    ),
    "swap": ("swap:swap", "Ask as if somebody else were spoken of, and say what that changes."),
    "import": ("measure:import_log", "Score the log of another tool, without a call."),
    "export": ("pack:export", "Write a run as a log or a table that other tools open."),
    "compare": ("findings:compare", "Compare two runs on the items they share."),
    "gate": ("gate:gate", "Say whether a change makes anything worse: pass, fail or open."),
    "watch": ("gate:watch", "Ask the same questions over time; an alarm when answers change."),
    "reliability": (
        "findings:reliability",
        "Say how much of a score is the order, the wording or the seed.",
    ),
    "report": ("findings:report", "Write a page of what runs showed, to look at and hand over."),
    "pack": (
        "pack:pack",
        "Pack runs as evidence: everything that is needed to check them, in one file.",
    ),
    "view": ("serving:view", "Look through the items of a run in a browser."),
    "gateway": (
        "gateway:gateway",
        "Stand in front of an endpoint and repair its answers on their way out.",
    ),
    "frontier": ("frontier:frontier", "Run several methods and say what each is worth."),
    "reproduce": (
        "reproduce:reproduce",
        "Reproduce a table or figure of a paper, its numbers beside ours.",
    ),
    "plan": ("plan:plan", "Plan a paired comparison before anything is spent."),
    "methods": ("methods:methods", "List the methods, or show one with its settings."),
    "overcorrection": (
        "frontier:overcorrection",
        "Count the benign texts that methods make worse.",
    ),
    "judge-scenarios": (
        "answers:judge_scenarios",
        "Let a model write the responses that judges are audited on.",
    ),
    "rate": ("rate:rate", "Let people rate texts: sheets out, sheets in, how far they agree."),
    "conformance": (
        "validation:conformance",
        "Test what scorers of BBQ-like questions make of answers whose truth is known.",
    ),
    "runs": (
        "runs:runs",
        "Look at run folders: list, show, report, repeats, status, export, verify.",
    ),
    "harms": (
        "harms:harms",
        "Harms of your own: a policy in words, and the check that lets it be used.",
    ),
    "scorers": ("scorers:scorers", "Toxicity scorers: list them, score texts, audit them."),
    "screen": (
        "screening:screen",
        "Screens with a promise: a cheap scorer decides where it is sure, a judge the rest.",
    ),
    "debate": ("debate:debate", "Let a model debate in roles and score what it says for bias."),
    "pairs": ("pairs:pairs", "Make preference pairs to train on."),
    "new": (
        "methods:new",
        "Write a package for an instrument, a method or a scorer of your own.",
    ),
    "train": ("train:train", "Train on pairs: SFT, a reward model, DPO, and RL against it."),
}
_NEED_NO_ARGUMENT = ("demo", "self-test", "serve-local", "methods", "conformance")


def load(name: str) -> Any:
    """Import a command, as a click command or group."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    gc.disable()  # our choice: what is imported stays, and looking for garbage takes a tenth of it
    try:
        loaded = getattr(importlib.import_module(f"evenhand.cli.{module}"), attribute)
    finally:
        gc.enable()
    holder = typer.Typer(rich_markup_mode=None)  # help is text: [judges] must not be markup
    if isinstance(loaded, typer.Typer):
        holder.add_typer(loaded, name=name)
    else:
        holder.command(name, no_args_is_help=name not in _NEED_NO_ARGUMENT)(loaded)
    command = typer.main.get_group(holder).commands[name]
    for part in getattr(command, "commands", {}).values():
        part.short_help = part.help.partition("\n\n")[0].replace("\n", " ")  # else cut off by "..."
    return command


class _LazyCommands(TyperGroup):
    """A group whose commands are stubs, good for a list of them, until one is typed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, load(name) if name in COMMANDS else stub, rest


app = typer.Typer(
    name="evenhand",
    cls=_LazyCommands,
    help="Measure, repair and train away social bias in language models with teams of agents.",
    epilog="First time? Run `evenhand doctor`: it says what is there and what to do next.",
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


def _stub() -> None:
    """A command that is not imported yet."""


for command, (_, summary) in COMMANDS.items():
    app.command(command, short_help=summary)(_stub)


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
