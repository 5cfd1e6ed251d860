"""Train on preference pairs, and convert, export and describe what was trained."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from evenhand.api import inputs
from evenhand.api.inputs import Model
from evenhand.core.errors import UserError, choices_for
from evenhand.experiments.request import Watch
from evenhand.experiments.settings import RunOptions, show_settings
from evenhand.experiments.training import Reinforcement, Rldf, RldfRecipe, RldfResult, train
from evenhand.training import cards, gguf, launch
from evenhand.training.events import Tell, silent
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


async def train_rldf(
    weights: str | Path,
    *,
    model: Model | None = None,
    pairs: str | Path | None = None,
    types: Sequence[str] | None = None,
    count: int = 40,
    rounds: int = 5,
    rl: Reinforcement = "ppo",
    full: bool = False,
    recipe: Mapping[str, Value] | None = None,
    sets: Sequence[str] | None = None,
    sample: int = 1_600,
    force: bool = False,
    data: str | Path | None = None,
    tell: Tell = silent,
    watch: Watch | None = None,
    **settings: Unpack[RunOptions],
) -> RldfResult:
    """Run RLDF from topics to measured weights: debates, pairs, SFT, reward model, RL, and
    log-probability benchmarks before and after. It stops at a referee that disagrees with itself,
    at a reward model that does not pass its audit, and at a training without effect.

    Args:
        weights: The model to train, in the Hugging Face format.
        model: The teacher: it lists topics, debates and scores. Not needed with `pairs`.
        pairs: Preference pairs to train on in place of debates.
        types: Bias types. Defaults to the five of the paper.
        count: Topics per type. The paper has 2000.
        rounds: Rounds of each debate.
        rl: `"ppo"`, as the paper, or `"rloo"`.
        full: Train all weights instead of a LoRA adapter.
        recipe: Numbers of the recipes, such as `{"sft.max_steps": 100}`.
        sets: Log-probability benchmarks. Defaults to the usual ones.
        sample: Maximum number of items per benchmark.
        force: Go on past the referee and the audit.
        data: Dataset directory. Default: `EVENHAND_DATA`.
        tell: Receives each step of the trainings.
        watch: Receives progress events.
        **settings: Settings of the runs, of which `out` is required: `RunOptions`. `seed` is also
            that of the trainings; caps are for all calls together.

    Returns:
        How far it came, which gate stopped it, and the changes of each stage. Call it again to
        go on.

    Raises:
        UserError: If an argument is invalid, or `out` was begun with others.

    Example:
        >>> done = evenhand.train_rldf("base", model=teacher, out="runs/rldf", count=20)
        >>> done.stopped or done.comparisons["ppo"]
    """
    loop = Rldf(
        recipe=RldfRecipe(
            weights=Path(weights),
            pairs=inputs.path_of(pairs),
            types=None if types is None else tuple(types),
            count=count,
            rounds=rounds,
            rl=rl,
            full=full,
            settings=tuple(f"{name}={value}" for name, value in (recipe or {}).items()),
            sets=None if sets is None else tuple(sets),
            sample=sample,
        ),
        models=inputs.run_models(model, None, data),
        settings=inputs.settings_of(settings),
        watch=watch or Watch(),
        force=force,
        tell=tell,
    )
    return await loop.run()


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


async def _train(job: TrainingJob, options: TrainOptions) -> TrainingResult:
    processes, tell = options.get("processes", 1), options.get("tell", silent)
    record = await train(job, processes=processes, tell=tell)
    assert record is not None  # nobody else could stop it
    run = await asyncio.to_thread(training_run, job.out)
    return TrainingResult(model=job.out / "model", outcome=str(record.get("outcome")), run=run)


show_settings(train_rldf)
