"""`evenhand train show`: how a training went."""

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.training.record import training_run
from evenhand.views import terminal_of


def show(
    folder: Annotated[Path, typer.Argument(metavar="TRAINING", help="The --out of a training.")],
    full: Annotated[bool, typer.Option("--full", help="Every step.")] = False,
    out_: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also a page with the curves: .html, .pdf, .md or .json."),
    ] = None,
    json: Json = False,
) -> None:
    """Show how a training went: loss, accuracy, reward, KL and length, at first and at last.

    Works while the training runs. The curves need the extra `report`.

    Example: evenhand train show runs/sft --out sft.html
    """
    training = training_run(folder)
    if out_ is not None:
        training.save(str(out_))
    if json:
        print_json(training.to_dict())
        return
    out.print(terminal_of(training, full=full))
    if out_ is not None:
        err.print(str(out_), style="dim", soft_wrap=True)
