"""`evenhand train export` and `train card`: trained weights and pairs for others to go on with."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.options import Json
from evenhand.cli.screen import out, print_json


class Project(StrEnum):
    openrlhf = "openrlhf"
    verl = "verl"


def export(
    project: Annotated[Project, typer.Argument(help="Who is to train.")],
    pairs: Annotated[Path, typer.Option(help="A folder of pairs.")],
    model: Annotated[Path, typer.Option(help="The model to train, in the Hugging Face form.")],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="A new folder for data and launch script.")
    ],
    reward: Annotated[
        Path | None, typer.Option(help="A reward model. verl needs one, OpenRLHF can train it.")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Machines.")] = 1,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs in each of them.")] = 4,
    json: Json = False,
) -> None:
    """Write data and a launch script for a cluster, with the numbers of our recipes.

    Example: evenhand train export verl --pairs pairs --model runs/sft/model --reward
    runs/reward/model --out verl-job
    """
    from evenhand.training.export import ExportJob  # noqa: PLC0415
    from evenhand.training.export import export as write  # noqa: PLC0415

    job = ExportJob(pairs=pairs, model=model, reward=reward, nodes=nodes, gpus=gpus)
    written = write(project.value, job, out_)
    if json:
        print_json({"files": [str(file) for file in written]})
        return
    for file in written:
        out.print(str(file))


def card(
    model: Annotated[Path, typer.Argument(help="The `model` folder of a training run.")],
    measured: Annotated[
        list[Path] | None,
        typer.Option(help="The output of `evenhand compare … --json`. May be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Write a model's card anew, with probes and with the measurements before and after.

    Example: evenhand train card runs/rloo/model --measured bbq.json --measured likelihood.json
    """
    from evenhand.training import cards  # noqa: PLC0415

    file = cards.renew(model, measured or ())
    if json:
        print_json({"card": str(file)})
    else:
        out.print(str(file))
