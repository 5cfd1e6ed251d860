"""Train on preference pairs, and convert, export and describe what was trained."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from evenhand.api import inputs
from evenhand.core.errors import UserError, choices_for
from evenhand.training import cards, gguf, launch
from evenhand.training.events import Note, Tell, TrainingStep, silent
from evenhand.training.export import ExportJob, export
from evenhand.training.launch import TrainingJob
from evenhand.training.record import TrainingRun, training_run

Value = str | int | float | bool


class TrainOptions(TypedDict, total=False):
    """The keyword arguments that every stage of a training takes.

    Attributes:
        bias_type: One bias type of the pairs. Defaults to all of them.
        full: Train all weights instead of a LoRA adapter.
        settings: Numbers of the recipe by name.
        processes: Processes that train together, started with torchrun. Default: 1.
        tell: Receives each step of a training in this process.
    """

    bias_type: str
    full: bool
    settings: Mapping[str, Value]
    processes: int
    tell: Tell


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """A training that came to its end.

    Attributes:
        model: The folder of the trained model.
        outcome: `"trained"`, or why the weights or the objective are not shown to have improved.
        run: The steps and the course of each quantity.
    """

    model: Path
    outcome: str
    run: TrainingRun


async def train_sft(
    model: str | Path,
    pairs: str | Path,
    out: str | Path,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Fine-tune a model on the less biased statement of each pair.

    Args:
        model: A model folder in the Hugging Face format.
        pairs: A folder of pairs.
        out: Training folder. A training that was interrupted is resumed.
        **options: As `TrainOptions` lists them.

    Returns:
        The trained model and its outcome.

    Raises:
        UserError: If the training extra is missing or a setting is invalid.
    """
    job = _job("sft", model, pairs, out, options)
    return await _train(job, options)


async def train_reward(
    model: str | Path,
    pairs: str | Path,
    out: str | Path,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Train a reward model that scores the less biased statement higher.

    Args:
        model: The `model` folder of a fine-tuning.
        pairs: A folder of pairs.
        out: Training folder. A training that was interrupted is resumed.
        **options: As `TrainOptions` lists them.

    Returns:
        The trained model and its outcome.

    Raises:
        UserError: If the training extra is missing or a setting is invalid.
    """
    job = _job("reward", model, pairs, out, options)
    return await _train(job, options)


async def train_dpo(
    model: str | Path,
    pairs: str | Path,
    out: str | Path,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Train on the pairs directly, without a reward model (not in the paper).

    Args:
        model: The `model` folder of a fine-tuning.
        pairs: A folder of pairs.
        out: Training folder. A training that was interrupted is resumed.
        **options: As `TrainOptions` lists them.

    Returns:
        The trained model and its outcome.

    Raises:
        UserError: If the training extra is missing or a setting is invalid.
    """
    job = _job("dpo", model, pairs, out, options)
    return await _train(job, options)


async def train_rloo(
    model: str | Path,
    pairs: str | Path,
    reward: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Train with reinforcement learning against a reward model, with a leave-one-out baseline.

    Args:
        model: The `model` folder of a fine-tuning.
        pairs: A folder of pairs.
        reward: The `model` folder of a probed reward model.
        out: Training folder. A training that was interrupted is resumed.
        force: Train even if the probes of the reward model did not pass.
        **options: As `TrainOptions` lists them.

    Returns:
        The trained model and its outcome.

    Raises:
        UserError: If the training extra is missing or a setting is invalid.
    """
    job = _job("rloo", model, pairs, out, options)
    job = replace(job, reward=Path(reward), force=force)
    return await _train(job, options)


async def train_ppo(
    model: str | Path,
    pairs: str | Path,
    reward: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    **options: Unpack[TrainOptions],
) -> TrainingResult:
    """Train with reinforcement learning against a reward model as the paper does, with a critic.

    Args:
        model: The `model` folder of a fine-tuning.
        pairs: A folder of pairs.
        reward: The `model` folder of a probed reward model.
        out: Training folder. A training that was interrupted is resumed.
        force: Train even if the probes of the reward model did not pass.
        **options: As `TrainOptions` lists them.

    Returns:
        The trained model and its outcome.

    Raises:
        UserError: If the training extra is missing or a setting is invalid.
    """
    job = _job("ppo", model, pairs, out, options)
    job = replace(job, reward=Path(reward), force=force)
    return await _train(job, options)


async def train_show(folder: str | Path) -> TrainingRun:
    """Read how a training went, or how it goes: loss, accuracy, reward, KL and length.

    Args:
        folder: The training folder.

    Returns:
        The steps, and the course of each quantity.

    Raises:
        UserError: If the folder holds no training.
    """
    return await asyncio.to_thread(training_run, Path(folder))


async def train_from_gguf(weights: str | Path, out: str | Path) -> Path:
    """Convert a GGUF file into a Hugging Face folder in fp32, ready to train.

    Args:
        weights: A .gguf file, or `"smollm2"`.
        out: The new folder.

    Returns:
        The folder.
    """
    return await asyncio.to_thread(gguf.from_gguf, str(weights), Path(out))


async def train_to_gguf(
    folder: str | Path,
    like: str | Path,
    out: str | Path,
    *,
    precision: Literal["f16", "q8_0"] = "f16",
) -> Path:
    """Write trained weights as a GGUF file that `serve_local` serves.

    Args:
        folder: Trained weights in the Hugging Face format.
        like: The .gguf file that the training started from, or `"smollm2"`.
        out: The new file; its name is the name that it is served by.
        precision: `"q8_0"` halves the size.

    Returns:
        The file.
    """
    return await asyncio.to_thread(gguf.to_gguf, Path(folder), str(like), Path(out), precision)


async def train_export(
    project: Literal["openrlhf", "verl"],
    pairs: str | Path,
    model: str | Path,
    out: str | Path,
    *,
    reward: str | Path | None = None,
    nodes: int = 1,
    gpus: int = 4,
) -> tuple[Path, ...]:
    """Write data and a launch script for training on a cluster.

    Args:
        project: The project that trains.
        pairs: A folder of pairs.
        model: The model to train, in the Hugging Face format.
        out: A new folder.
        reward: A reward model. verl requires one.
        nodes: Number of machines.
        gpus: Number of GPUs per machine.

    Returns:
        The files.
    """
    job = ExportJob(
        pairs=Path(pairs),
        model=Path(model),
        reward=inputs.path_of(reward),
        nodes=nodes,
        gpus=gpus,
    )
    return tuple(await asyncio.to_thread(export, project, job, Path(out)))


async def train_card(
    model: str | Path, *, measured: str | Path | Sequence[str | Path] = ()
) -> Path:
    """Rewrite the card of a trained model, with its probes and measurements.

    Args:
        model: The `model` folder of a training.
        measured: A JSON file of a comparison before and after the training, or several.

    Returns:
        The card.
    """
    files = [measured] if isinstance(measured, str | Path) else measured
    return await asyncio.to_thread(cards.renew, Path(model), [*map(Path, files)])


def _job(
    stage: str, model: str | Path, pairs: str | Path, out: str | Path, options: TrainOptions
) -> TrainingJob:
    known = TrainOptions.__annotations__
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise UserError(f"unknown training option {unknown!r}. {choices_for(unknown, known)}")
    assignments = [f"{name}={value}" for name, value in options.get("settings", {}).items()]
    return TrainingJob(
        stage=stage,
        recipe=launch.recipe_of(stage, full=options.get("full", False), assignments=assignments),
        model=Path(model),
        pairs=Path(pairs),
        config=options.get("bias_type", "default"),
        out=Path(out),
    )


class _TrainingCancelled(Exception):
    """Ends a training whose caller was cancelled; it is resumed from its last checkpoint."""


async def _to_its_end(training: Callable[[], dict[str, Any]], stop: Callable[[], None]) -> Any:
    """Run a training in a thread. Who cancels it waits until it has stopped: two trainings in a
    folder would write over each other."""
    running = asyncio.ensure_future(asyncio.to_thread(training))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.gather(running, return_exceptions=True)
        raise


async def _train(job: TrainingJob, options: TrainOptions) -> TrainingResult:
    processes, tell = options.get("processes", 1), options.get("tell", silent)
    stopped = threading.Event()

    def told(event: TrainingStep | Note) -> None:
        if stopped.is_set():
            raise _TrainingCancelled
        tell(event)

    record = await _to_its_end(
        partial(launch.train, job, processes, told, stopped.is_set), stopped.set
    )
    run = await asyncio.to_thread(training_run, job.out)
    return TrainingResult(model=job.out / "model", outcome=str(record.get("outcome")), run=run)
