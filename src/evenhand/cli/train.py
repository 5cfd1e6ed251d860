"""`evenhand train …`: train on preference pairs, a command per stage, and convert weights."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.live import Live
from rich.progress import Progress
from rich.text import Text

from evenhand.cli.codes import INCONCLUSIVE, NOTHING, STOPPED
from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_finding, print_json
from evenhand.models.local_models import gguf_file
from evenhand.training import gguf
from evenhand.training.record import training_run
from evenhand.views.numbers import duration

if TYPE_CHECKING:
    from evenhand.training.launch import TrainingJob

_PLAIN_LINE_SECONDS = 5.0


class TrainingDisplay:
    """Takes the events of a training. A context, so that the live line ends with it."""

    def __init__(self) -> None:
        self._live = Live(console=err, auto_refresh=False) if err.is_terminal else None
        self._last = -_PLAIN_LINE_SECONDS

    def __enter__(self) -> "TrainingDisplay":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, event: Any) -> None:
        if hasattr(event, "text"):
            err.print(event.text, style="yellow", soft_wrap=True)
            return
        line = status(event)
        if self._live is not None:
            self._live.update(Text(line), refresh=True)
        elif event.step == event.steps or time.monotonic() - self._last >= _PLAIN_LINE_SECONDS:
            self._last = time.monotonic()
            err.print(line, soft_wrap=True)


def status(step: Any) -> str:
    """sft 12 of 40 · loss 2.031 · reward 0.12 · KL 0.010 · 84 tokens · 3 min left"""
    facts = [f"{step.stage} {step.step:,} of {step.steps:,}"]
    for name, value, form in (
        ("loss", step.loss, ".3f"),
        ("accuracy", step.accuracy, ".2f"),
        ("reward", step.reward, ".2f"),
        ("KL", step.kl, ".3f"),
    ):
        if value is not None:
            facts.append(f"{name} {value:{form}}")
    if step.length is not None:
        facts.append(f"{step.length:.0f} tokens")
    if step.eta_seconds is not None:
        facts.append(f"{duration(step.eta_seconds)} left")
    return " · ".join(facts)


def from_gguf(
    weights: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Convert this .gguf file, or `smollm2` for the small model."
        ),
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="Write this new folder in the Hugging Face format.")
    ],
    json: Json = False,
) -> None:
    """Turn a GGUF file into a Hugging Face folder in fp32, ready to train.

    The conversion restores no precision of quantized weights. SmolLM2 has 4 bits.

    Example: evenhand train from-gguf smollm2 --out smollm2-hf
    """
    file = gguf_file(weights)
    err.print(f"reading {file.name} …")
    folder = gguf.from_gguf(str(file), out_)
    if json:
        print_json({"folder": str(folder), "from": str(file)})
        return
    out.print(str(folder))
    err.print(f"next: evenhand train sft --model {folder} --pairs FOLDER --out runs/sft")


def to_gguf(
    folder: Annotated[
        Path, typer.Argument(help="Convert these trained weights in the Hugging Face format.")
    ],
    like: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Set the .gguf file that training started from, or `smollm2`."
        ),
    ],
    out_: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Write this .gguf file. The server uses its name as model name."
        ),
    ],
    precision: Annotated[
        Literal["f16", "q8_0"],
        typer.Option(
            help="Choose the precision. f16 preserves the training, q8_0 halves the size."
        ),
    ] = "f16",
    json: Json = False,
) -> None:
    """Write trained weights as a GGUF file that `evenhand serve-local --gguf` serves.

    To compare with the untrained weights, convert them with the same two commands. Otherwise you
    also compare the rounding of a 4-bit file with a 16-bit file.

    Example: evenhand train to-gguf runs/sft/model --like smollm2 --out smollm2-sft.gguf
    """
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task("tensors", total=None)
        written = gguf.to_gguf(
            folder,
            like,
            out_,
            precision,
            lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if json:
        print_json({"file": str(written), "served_as": written.stem})
        return
    out.print(str(written))
    err.print(f"next: evenhand serve-local --gguf {written}   (its model name: {written.stem})")


def export(
    project: Annotated[
        Literal["openrlhf", "verl"], typer.Argument(help="Choose the training framework.")
    ],
    pairs: Annotated[Path, typer.Option(help="Read preference pairs from this folder.")],
    model: Annotated[Path, typer.Option(help="Train this model in the Hugging Face format.")],
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="Write data and launch script into this new folder.")
    ],
    reward: Annotated[
        Path | None,
        typer.Option(help="Use this reward model. verl requires it, OpenRLHF can train it."),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Set the number of machines.")] = 1,
    gpus: Annotated[int, typer.Option(min=1, help="Set the number of GPUs per machine.")] = 4,
    json: Json = False,
) -> None:
    """Write data and a launch script for a cluster, with the numbers of our recipes.

    Example: evenhand train export verl --pairs pairs --model runs/sft/model --reward
    runs/reward/model --out verl-job
    """
    from evenhand.training.export import ExportJob  # noqa: PLC0415
    from evenhand.training.export import export as write  # noqa: PLC0415

    job = ExportJob(pairs=pairs, model=model, reward=reward, nodes=nodes, gpus=gpus)
    written = write(project, job, out_)
    if json:
        print_json({"files": [str(file) for file in written]})
        return
    for file in written:
        out.print(str(file))


def card(
    model: Annotated[
        Path, typer.Argument(help="Update the card of this `model` folder of a training run.")
    ],
    measured: Annotated[
        list[Path] | None,
        typer.Option(help="Add this output of `evenhand compare … --json`. May be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Update a model card with probes and with the measurements before and after.

    Example: evenhand train card runs/rloo/model --measured bbq.json --measured likelihood.json
    """
    from evenhand.training import cards  # noqa: PLC0415

    file = cards.renew(model, measured or ())
    if json:
        print_json({"card": str(file)})
    else:
        out.print(str(file))


def show(
    folder: Annotated[
        Path, typer.Argument(metavar="TRAINING", help="Read the --out folder of a training run.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Show every step.")] = False,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Also write a page with the curves: .html, .pdf, .md or .json."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show how a training went: loss, accuracy, reward, KL and length, at first and at last.

    The command also works during the training. The curves need the extra `report`.

    Example: evenhand train show runs/sft --out sft.html
    """
    training = training_run(folder)
    if out_ is not None:
        training.save(str(out_))
    print_finding(training, json=json, full=full)
    if out_ is not None:
        err.print(str(out_), style="dim", soft_wrap=True)


_SHOWN = ("stage", "outcome", "steps", "weights", "objective", "world_size", "metrics")

train = typer.Typer(
    help="Train on preference pairs: SFT, reward model, DPO, RLOO, PPO.\n\n"
    "Exits with code 2 if nothing was trained, and with 4 if an improvement of the loss (RL: the "
    "reward) is inconclusive.",
    no_args_is_help=True,
)

_Model = Annotated[
    Path,
    typer.Option(help="Start from this Hugging Face folder, such as `model` of `train sft`."),
]
_Pairs = Annotated[Path, typer.Option(help="Read the folder that `evenhand train pairs` wrote.")]
_Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        help="Write the model, its record and logs. Resumes an existing training run.",
    ),
]
_Type = Annotated[
    str,
    typer.Option(
        "--bias-type", help="Train on this bias type of the pairs. Default: all bias types."
    ),
]
_AllWeights = Annotated[
    bool, typer.Option("--full", help="Train all weights instead of a LoRA adapter.")
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a number of the recipe, as name=value. May be repeated."),
]
_Processes = Annotated[
    int, typer.Option(min=1, help="Set the number of training processes, which torchrun starts.")
]
_Reward = Annotated[Path, typer.Option(help="Use the `model` folder of an audited reward model.")]
_Force = Annotated[
    bool, typer.Option("--force", help="Train against a reward model whose probes did not pass.")
]


# stage: its help, and the command that may follow
_ON_PAIRS = {
    "sft": (
        "Fine-tune on the less biased statement of each pair.\n\n"
        "Example: evenhand train sft --model smollm2-hf --pairs data/pairs --out runs/sft",
        "evenhand train reward --model {out}/model --pairs {pairs}",
    ),
    "reward": (
        "Train a reward model: higher for the less biased statement.\n\n"
        "Example: evenhand train reward --model runs/sft/model --pairs data/pairs --out "
        "runs/reward",
        "evenhand audit reward --weights {out}/model --pairs {pairs} --out {out}/audit",
    ),
    "dpo": (
        "Train on the pairs directly, without a reward model (not in the paper).\n\n"
        "Example: evenhand train dpo --model runs/sft/model --pairs data/pairs --out runs/dpo",
        None,
    ),
}
_ON_REWARDS = {
    "rloo": "Reinforcement learning against the reward model, with a leave-one-out baseline.\n\n"
    "The reward includes KL to the starting model, printed at each step. Training stops at the "
    "recipe's target_kl.\n\n"
    "Example: evenhand train rloo --model runs/sft/model --reward runs/reward/model --pairs "
    "data/pairs --out runs/rloo",
    "ppo": "Reinforcement learning against the reward model as the paper does it, with a critic."
    "\n\nExample: evenhand train ppo --model runs/sft/model --reward runs/reward/model --pairs "
    "data/pairs --out runs/ppo",
}


def _on_pairs(stage: str, next_: str | None) -> Callable[..., None]:
    """Make the command of a stage that needs only pairs."""

    def command(
        model: _Model,
        pairs: _Pairs,
        out_: _Out,
        bias_type: _Type = "default",
        full: _AllWeights = False,
        set_: _Settings = None,
        processes: _Processes = 1,
        json: Json = False,
    ) -> None:
        job = _job(stage, model, pairs, out_, bias_type, full, set_)
        _train(job, processes, json, next_ and next_.format(out=out_, pairs=pairs))

    return command


def _on_rewards(stage: str) -> Callable[..., None]:
    """Make the command of a stage that trains against a reward model."""

    def command(
        model: _Model,
        pairs: _Pairs,
        reward: _Reward,
        out_: _Out,
        bias_type: _Type = "default",
        full: _AllWeights = False,
        set_: _Settings = None,
        force: _Force = False,
        processes: _Processes = 1,
        json: Json = False,
    ) -> None:
        job = _job(stage, model, pairs, out_, bias_type, full, set_)
        _train(replace(job, reward=reward, force=force), processes, json)

    return command


for stage, (about, next_) in _ON_PAIRS.items():
    train.command(stage, no_args_is_help=True, help=about)(_on_pairs(stage, next_))
for stage, about in _ON_REWARDS.items():
    train.command(stage, no_args_is_help=True, help=about)(_on_rewards(stage))
for command in (show, from_gguf, to_gguf, export, card):
    train.command(no_args_is_help=True)(command)


def _job(
    stage: str,
    model: Path,
    pairs: Path,
    out: Path,
    bias_type: str,
    full: bool,
    settings: list[str] | None,
) -> "TrainingJob":
    # Imported here: `evenhand --help` needs no torch, and works without the train extra.
    from evenhand.training import launch  # noqa: PLC0415

    return launch.TrainingJob(
        stage=stage,
        recipe=launch.recipe_of(stage, full=full, assignments=settings or ()),
        model=model,
        pairs=pairs,
        config=bias_type,
        out=out,
    )


def _train(job: "TrainingJob", processes: int, json: bool, next_: str | None = None) -> None:
    from evenhand.training import launch  # noqa: PLC0415

    try:
        with TrainingDisplay() as display:
            record = launch.train(job, processes, display)
    except KeyboardInterrupt:
        err.print("stopped; run the same command again to resume from the last checkpoint")
        raise typer.Exit(STOPPED) from None
    _report(job.out / "model", record, next_, json)


def _report(folder: Path, summary: dict[str, Any], next_: str | None, json: bool) -> None:
    """Print what the training changed, and exit with the code of the outcome."""
    from evenhand.training.record import NOTHING_TRAINED, statements  # noqa: PLC0415

    if json:
        print_json({"model": str(folder), **{name: summary.get(name) for name in _SHOWN}})
    else:
        style = None if summary["outcome"] == "trained" else "yellow"
        for line in statements(summary):
            err.print(line, style=style, soft_wrap=True)
        out.print(str(folder), soft_wrap=True)
        if next_ is not None and summary["outcome"] not in NOTHING_TRAINED:
            err.print(f"next: {next_}", style="dim", soft_wrap=True)
    if summary["outcome"] in NOTHING_TRAINED:
        raise typer.Exit(NOTHING)
    if summary["outcome"] == "inconclusive":
        raise typer.Exit(INCONCLUSIVE)
