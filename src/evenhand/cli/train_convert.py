"""`evenhand train from-gguf` and `to-gguf`: weights that llama.cpp serves into a folder that
trains, and back, so that they are served and measured like those they came from."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.models.local_models import gguf_file
from evenhand.training.config import prepare


class Precision(StrEnum):
    f16 = "f16"
    q8_0 = "q8_0"


def from_gguf(
    weights: Annotated[
        str, typer.Argument(metavar="FILE", help="A .gguf file, or `smollm2` for the small one.")
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="A new folder in the Hugging Face form.")
    ],
    json: Json = False,
) -> None:
    """Turn a GGUF file into a Hugging Face folder in fp32, ready to train.

    Quantised weights stay as coarse as they are: SmolLM2 comes in 4 bits.

    Example: evenhand train from-gguf smollm2 --out smollm2-hf
    """
    file = gguf_file(weights)
    err.print(f"reading {file.name} …")
    prepare()
    from evenhand.training.gguf_weights import from_gguf as convert  # noqa: PLC0415

    folder = convert(file, out_)
    if json:
        print_json({"folder": str(folder), "from": str(file)})
        return
    out.print(str(folder))
    err.print(f"next: evenhand train sft --model {folder} --pairs FOLDER --out runs/sft")


def to_gguf(
    folder: Annotated[Path, typer.Argument(help="Trained weights in the Hugging Face form.")],
    like: Annotated[
        str,
        typer.Option(metavar="FILE", help="The .gguf file that training began with, or `smollm2`."),
    ],
    out_: Annotated[Path, typer.Option("--out", "-o", help="The .gguf file; its name is served.")],
    precision: Annotated[
        Precision, typer.Option(help="f16 keeps what was trained; q8_0 is half the size.")
    ] = Precision.f16,
    json: Json = False,
) -> None:
    """Write trained weights as a GGUF file that `evenhand serve-local --gguf` serves.

    To compare with the untrained weights, bring them through the same two commands: a 4-bit file
    beside a 16-bit one would compare the rounding too.

    Example: evenhand train to-gguf runs/sft/model --like smollm2 --out smollm2-sft.gguf
    """
    prepare()
    from evenhand.training.gguf_weights import to_gguf as convert  # noqa: PLC0415

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("tensors", total=None)
        written = convert(
            folder,
            gguf_file(like),
            out_,
            precision.value,
            lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if json:
        print_json({"file": str(written), "served_as": written.stem})
        return
    out.print(str(written))
    err.print(f"next: evenhand serve-local --gguf {written}   (its model name: {written.stem})")
