"""The `evenhand` command and how it ends: 0 done, 1 an error said in words, 2 done but coverage
below the floor, 3 stopped at a cap, 130 stopped by a signal and resumable."""

import sys

import orjson
import typer

from evenhand.cli.answer import answer
from evenhand.cli.compare import compare
from evenhand.cli.debate import debate
from evenhand.cli.doctor import doctor
from evenhand.cli.frontier import frontier
from evenhand.cli.judge_check import judge_check
from evenhand.cli.measure import measure
from evenhand.cli.methods import methods
from evenhand.cli.mitigate import mitigate
from evenhand.cli.overcorrection import overcorrection
from evenhand.cli.pairs import pairs
from evenhand.cli.plan import plan
from evenhand.cli.runs import runs
from evenhand.cli.scorers import scorers
from evenhand.cli.screen import problem
from evenhand.cli.serve_local import serve_local
from evenhand.cli.train import train
from evenhand.errors import EvenhandError

app = typer.Typer(
    name="evenhand",
    help="Measure, repair and train away social bias in language models with teams of agents.",
    epilog="First time? Run `evenhand doctor`: it says what is there and what to do next.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (doctor, serve_local, answer, mitigate, compare, frontier, plan, methods):
    asks_for_input = command not in (doctor, serve_local, methods)
    app.command(no_args_is_help=asks_for_input)(command)
app.add_typer(measure, name="measure")
app.command(no_args_is_help=True)(overcorrection)
app.command("judge-check", no_args_is_help=True)(judge_check)
app.add_typer(debate, name="debate")
app.add_typer(pairs, name="pairs")
app.add_typer(runs, name="runs")
app.add_typer(scorers, name="scorers")
app.add_typer(train, name="train")


def main() -> None:
    try:
        app()
    except EvenhandError as error:
        if "--json" in sys.argv:
            described = {"error": {"reason": error.reason, "message": str(error)}}
            sys.stdout.write(orjson.dumps(described).decode() + "\n")
        problem(str(error))
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
