"""`evenhand train …`: pairs into weights, one command a stage."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.codes import NOTHING, OPEN, STOPPED
from evenhand.cli.options import Json
from evenhand.cli.screen import err, out, print_json
from evenhand.cli.train_convert import from_gguf, to_gguf
from evenhand.cli.train_export import card, export
from evenhand.cli.train_progress import TrainingDisplay
from evenhand.cli.train_show import show

if TYPE_CHECKING:
    from evenhand.training.launch import TrainingJob

_SHOWN = ("stage", "outcome", "steps", "weights", "objective", "world_size", "metrics")

train = typer.Typer(
    help="Train on pairs: SFT, a reward model, DPO, and RL against it.\n\n"
    "Ends with code 2 if nothing was trained, and with 4 if the loss (RL: the reward) is not shown "
    "to improve.",
    no_args_is_help=True,
)

_Model = Annotated[Path, typer.Option(help="A Hugging Face folder to start from.")]
_Sft = Annotated[Path, typer.Option(help="The `model` folder of `evenhand train sft`.")]
_Pairs = Annotated[Path, typer.Option(help="A folder that `evenhand pairs` wrote.")]
_Out = Annotated[
    Path,
    typer.Option("--out", "-o", help="For the model, its record and logs. Resumes what is there."),
]
_Type = Annotated[
    str, typer.Option("--bias-type", help="One bias type of the pairs. Default: all of them.")
]
_Full = Annotated[bool, typer.Option("--full", help="All weights, not a LoRA adapter.")]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A number of the recipe, as name=value. May be repeated."),
]
_Processes = Annotated[
    int, typer.Option(min=1, help="Processes that train together, started with torchrun.")
]
_Reward = Annotated[Path, typer.Option(help="The `model` folder of a probed reward model.")]
_Force = Annotated[
    bool, typer.Option("--force", help="Train against a reward model whose probes did not pass.")
]


@train.command(no_args_is_help=True)
def sft(
    model: _Model,
    pairs: _Pairs,
    out_: _Out,
    bias_type: _Type = "default",
    full: _Full = False,
    set_: _Settings = None,
    processes: _Processes = 1,
    json: Json = False,
) -> None:
    """Fine-tune on the less biased statement of each pair.

    Example: evenhand train sft --model smollm2-hf --pairs data/pairs --out runs/sft
    """
    job = _job("sft", model, pairs, out_, bias_type, full, set_)
    _train(job, processes, json, f"evenhand train reward --model {out_}/model --pairs {pairs}")


@train.command(no_args_is_help=True)
def reward(
    model: _Sft,
    pairs: _Pairs,
    out_: _Out,
    bias_type: _Type = "default",
    full: _Full = False,
    set_: _Settings = None,
    processes: _Processes = 1,
    json: Json = False,
) -> None:
    """Train a reward model: higher for the less biased statement.

    Example: evenhand train reward --model runs/sft/model --pairs data/pairs --out runs/reward
    """
    job = _job("reward", model, pairs, out_, bias_type, full, set_)
    audit = f"evenhand audit reward --weights {out_}/model --pairs {pairs} --out {out_}/audit"
    _train(job, processes, json, audit)


@train.command(no_args_is_help=True)
def dpo(
    model: _Sft,
    pairs: _Pairs,
    out_: _Out,
    bias_type: _Type = "default",
    full: _Full = False,
    set_: _Settings = None,
    processes: _Processes = 1,
    json: Json = False,
) -> None:
    """Train on the pairs directly, without a reward model (not in the paper).

    Example: evenhand train dpo --model runs/sft/model --pairs data/pairs --out runs/dpo
    """
    _train(_job("dpo", model, pairs, out_, bias_type, full, set_), processes, json)


@train.command(no_args_is_help=True)
def rloo(
    model: _Sft,
    pairs: _Pairs,
    reward: _Reward,
    out_: _Out,
    bias_type: _Type = "default",
    full: _Full = False,
    set_: _Settings = None,
    force: _Force = False,
    processes: _Processes = 1,
    json: Json = False,
) -> None:
    """Reinforcement learning against the reward model, with a leave-one-out baseline.

    KL to the model it starts from is in the reward, shown at each step, and ends the training at
    the recipe's target_kl.

    Example: evenhand train rloo --model runs/sft/model --reward runs/reward/model
    --pairs data/pairs --out runs/rloo
    """
    job = _job("rloo", model, pairs, out_, bias_type, full, set_)
    _train(replace(job, reward=reward, force=force), processes, json)


@train.command(no_args_is_help=True)
def ppo(
    model: _Sft,
    pairs: _Pairs,
    reward: _Reward,
    out_: _Out,
    bias_type: _Type = "default",
    full: _Full = False,
    set_: _Settings = None,
    force: _Force = False,
    processes: _Processes = 1,
    json: Json = False,
) -> None:
    """Reinforcement learning against the reward model as the paper does it, with a critic.

    Example: evenhand train ppo --model runs/sft/model --reward runs/reward/model
    --pairs data/pairs --out runs/ppo
    """
    job = _job("ppo", model, pairs, out_, bias_type, full, set_)
    _train(replace(job, reward=reward, force=force), processes, json)


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
        err.print("stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(STOPPED) from None
    _report(job.out / "model", record, next_, json)


def _report(folder: Path, summary: dict[str, Any], next_: str | None, json: bool) -> None:
    """What the training changed, and an exit code that says so too."""
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
    if summary["outcome"] == "open":
        raise typer.Exit(OPEN)
