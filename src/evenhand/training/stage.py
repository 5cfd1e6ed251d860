"""What all stages do around a trainer of TRL: the folder, the record, resume, and the finish."""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import datasets
import torch
from accelerate import PartialState
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.tensorboard import SummaryWriter
from transformers import TrainerCallback, get_scheduler
from transformers.integrations import TensorBoardCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.utils import logging as transformers_logging

from evenhand.core.errors import UserError
from evenhand.training import data
from evenhand.training import record as records
from evenhand.training.config import world_size
from evenhand.training.debates.splits import in_turn
from evenhand.training.events import Note, Tell, TrainingStep
from evenhand.training.folders import claim, drop_old, newest_whole, require_model, seal
from evenhand.training.recipes import Recipe
from evenhand.training.record import objective, outcome, weight_change
from evenhand.training.weights import on_gpu, save

# The names that the trainers log under.
_REWARD = ("reward", "rewards/chosen", "mean_reward")
_LENGTH = ("completions/mean_length",)
_ACCURACY = ("accuracy", "rewards/accuracies", "mean_token_accuracy")

_WINDOW = 4  # one batch says little about KL; its estimate can even be below 0


class EventCallback(TrainerCallback):  # type: ignore[misc]
    def __init__(self, stage: str, tell: Tell) -> None:
        self._stage = stage
        self._tell = tell
        self._started = time.monotonic()
        self._first = 0

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._started, self._first = time.monotonic(), state.global_step

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        done = state.global_step - self._first
        each = (time.monotonic() - self._started) / done if done else None
        self._tell(
            TrainingStep(
                stage=self._stage,
                step=state.global_step,
                steps=state.max_steps,
                loss=_of(logs, ("loss",)),
                reward=_of(logs, _REWARD),
                kl=_of(logs, ("kl",)),
                length=_of(logs, _LENGTH),
                accuracy=_of(logs, _ACCURACY),
                eta_seconds=None if each is None else each * (state.max_steps - state.global_step),
            )
        )


class ChecksumCallback(TrainerCallback):  # type: ignore[misc]
    """A checkpoint counts as written when its checksums are, and they wait for all processes."""

    def __init__(self, keep: int) -> None:
        self._keep = keep

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        PartialState().wait_for_everyone()
        if state.is_world_process_zero:
            folder = Path(args.output_dir)
            seal(folder / f"checkpoint-{state.global_step}")
            drop_old(folder, self._keep)


class StopAtKl(TrainerCallback):  # type: ignore[misc]
    """Ends the training when the model has moved `target` nats a token away. Reads the trainer's
    own history, so a resumed training stops at the same step."""

    def __init__(self, target: float, tell: Tell) -> None:
        self._target = target
        self._tell = tell
        self.stopped_at: int | None = None

    def on_log(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        values = [entry["kl"] for entry in state.log_history if entry.get("kl") is not None]
        if len(values) < _WINDOW or (moved := fmean(values[-_WINDOW:])) <= self._target:
            return
        control.should_training_stop = True
        if self.stopped_at is None and state.is_world_process_zero:
            self._tell(
                Note(
                    f"stopped at step {state.global_step}: KL is {moved:.3f} nats a token, above "
                    f"the target of {self._target}; raise target_kl (--set) to go further"
                )
            )
        self.stopped_at = state.global_step


def _of(logs: dict[str, Any], names: tuple[str, ...]) -> float | None:
    """The first of them that the trainer logged. It logs some numbers as text."""
    return next((float(logs[name]) for name in names if logs.get(name) is not None), None)


def rates(recipe: Recipe, steps: int) -> Callable[[int], float]:
    """The share of the full learning rate at each step, counted from 0.

    The schedules are those of transformers without their first and last value, which are 0: a
    training of one step would learn nothing, and a longer one would waste two steps.

    Args:
        recipe: Names the schedule and the share of the steps that warm up.
        steps: All steps of the training.

    Returns:
        A function of the step. It is above 0 for every step below `steps`.
    """
    unused = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_scheduler(
        recipe.schedule,
        unused,
        num_warmup_steps=math.ceil(recipe.warmup * steps),
        num_training_steps=steps + 1,
    )
    share = schedule.lr_lambdas[0]
    return lambda step: float(share(step + 1))


@dataclass(slots=True)
class Stage:
    """One training in its folder: out/model, out/train.json, out/logs, and while it runs
    out/checkpoints."""

    record: dict[str, Any]
    recipe: Recipe
    model: Path
    pairs: Path
    out: Path
    tell: Tell
    _rates: list[float] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return bool(self.record["state"] == "done") and (self.out / "model").is_dir()

    @property
    def checkpoints(self) -> Path:
        return self.out / "checkpoints"

    def arguments(self) -> dict[str, Any]:
        """What every TRL config takes. TRL's own defaults are for a GPU of this decade."""
        recipe, gpu = self.recipe, on_gpu()
        half = gpu and torch.cuda.is_bf16_supported()
        return {
            "output_dir": str(self.checkpoints),
            "per_device_train_batch_size": min(recipe.micro_batch, recipe.batch),
            "per_device_eval_batch_size": recipe.micro_batch,
            "gradient_accumulation_steps": recipe.accumulation(world_size()),
            "learning_rate": recipe.learning_rate,
            "weight_decay": recipe.weight_decay,
            "num_train_epochs": recipe.epochs,
            "max_steps": -1 if recipe.max_steps is None else recipe.max_steps,
            "seed": recipe.seed,
            "use_cpu": not gpu,
            "bf16": half,
            "fp16": gpu and not half,  # the paper's V100 has no bf16
            "gradient_checkpointing": gpu,
            "dataloader_pin_memory": gpu,
            "save_strategy": "steps",
            "save_steps": recipe.save_every,
            "save_total_limit": None,  # `ChecksumCallback` keeps the newest
            "logging_steps": 1,
            "trust_remote_code": False,  # TRL loads a reference, and vLLM the model, by its folder
            "report_to": "none",  # TensorBoard is added with a folder of our choice
            "disable_tqdm": True,
            "ddp_find_unused_parameters": False,
        }

    def callbacks(self) -> list[Any]:
        handlers: list[Any] = [
            EventCallback(self.record["stage"], self.tell),
            ChecksumCallback(self.recipe.keep),
        ]
        if PartialState().is_main_process:
            handlers.append(TensorBoardCallback(SummaryWriter(str(self.out / "logs"))))
        return handlers

    def run(self, trainer: Any) -> None:
        """Train to the end, from the newest whole checkpoint if there is one."""
        for kind in (PrinterCallback, ProgressCallback):  # they print; ours tells
            trainer.remove_callback(kind)
        _scheduled(trainer, self.recipe)
        checkpoint = newest_whole(self.checkpoints, self.say)
        if checkpoint is not None:
            step = int(checkpoint.name.rpartition("-")[2])
            self.say(Note(f"goes on from step {step}"))
            self.record["resumed_from"].append(step)
        self.write()
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        self.note_steps(trainer.state.global_step, trainer.state.log_history)

    def note_steps(self, steps: int, history: Sequence[Mapping[str, Any]]) -> None:
        """What the steps logged: the last value of each number, the rates and the objective."""
        self.record["steps"] = steps
        self.record["metrics"] |= _last(history)
        goal = "reward" if self.record["stage"] in ("rloo", "ppo") else "loss"
        self.record["objective"] = objective(goal, _logged(history, goal))
        self._rates = _logged(history, "learning_rate")

    def note_prompts(self, available: int, used: int) -> None:
        self.record["prompts"] = {"used": used, "left_out": available - used}
        if used < available:
            self.say(Note(f"{available - used} of {available} prompts are too long, left out"))

    def held_out(self, config: str) -> list[data.Row]:
        rows = data.held_out(self.pairs, config)
        return in_turn(rows, lambda row: str(row["topic"]), self.recipe.held_out)

    def evaluate(self, trainer: Any) -> None:
        if trainer.eval_dataset is None:
            return
        self.say(Note(f"looks at {len(trainer.eval_dataset)} held-out rows"))
        self.record["metrics"] |= trainer.evaluate()

    def finish(self, trainer: Any, fresh: Callable[[], Any], tokenizer: Any) -> Path:
        model = save(trainer, fresh, tokenizer, self.out)
        self.close(model)
        return model

    def close(self, model: Path, start: Callable[[], Mapping[str, Any]] | None = None) -> None:
        """Write the card and the record, last of all: a record that says done comes with a model.

        Args:
            model: The folder of the trained model.
            start: Tensors that the training began with and the base folder has none of.
        """
        from evenhand.training.cards import write_model_card  # noqa: PLC0415 it reads records too

        self.record["state"] = "done"
        if PartialState().is_main_process:
            self.record["weights"] = weight_change(self.model, model, start)
            self.record["outcome"] = outcome(
                self.record["steps"], self._rates, self.record["weights"], self.record["objective"]
            )
            write_model_card(
                model,
                stage=self.record["stage"],
                base=self.model,
                pairs=self.pairs,
                record=self.record,
            )
            self.write()
            shutil.rmtree(self.checkpoints, ignore_errors=True)
        PartialState().wait_for_everyone()

    def say(self, event: TrainingStep | Note) -> None:
        """Told once, however many processes there are."""
        if PartialState().is_main_process:
            self.tell(event)

    def write(self) -> None:
        if PartialState().is_main_process:
            records.save(self.out, self.record)


def require_step(recipe: Recipe, model: Path, rows: int, what: str) -> None:
    """Refuse rows that are too few for one step, before anything is written.

    Args:
        recipe: Says how many rows a step has.
        model: The folder to start from; one that is not a model is refused first.
        rows: How many there are to learn from.
        what: Their name in the error.
    """
    require_model(model)
    recipe.require_step(rows, what, world_size())


def open_stage(
    name: str,
    recipe: Recipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str,
    tell: Tell,
    reward: Path | None = None,
) -> Stage:
    """Start a training, or resume the one in its folder.

    Args:
        name: The name of the stage, such as "dpo".
        recipe: The settings of the training.
        model: The folder of the model to start from.
        pairs: The folder of preference pairs.
        out: The folder of the training.
        config: A bias type, or "default" for all of them.
        tell: Receives the events of the training.
        reward: The folder of the reward model; None for a stage without one.

    Returns:
        The stage.

    Raises:
        UserError: If the folder holds another training, or a model folder is not valid.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    datasets.disable_progress_bars()
    for folder in (model, reward):
        if folder is not None:
            require_model(folder)
    claim(out, model, pairs, reward)
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    started = PartialState(cpu=not on_gpu())
    require_world_size(world_size())
    now = records.begun(
        name,
        recipe,
        model,
        pairs,
        config=config,
        world_size=started.num_processes,
        reward=reward,
    )
    out.mkdir(parents=True, exist_ok=True)
    before = records.load(out)
    if before is not None:
        records.require_same(out, before, now)
        now |= before
    stage = Stage(now, recipe, model, pairs, out, tell)
    if before is None:
        stage.write()  # first of all: what has no record is not ours
    if stage.done:
        stage.say(Note(f"{out} is trained already; give another --out to train again"))
    return stage


def require_world_size(expected: int) -> None:
    """Refuse another number of processes than was asked for.

    `accelerate launch --cpu --num_processes 2` starts one process without an error.
    """
    actual = PartialState(cpu=not on_gpu()).num_processes
    if actual != expected:
        raise UserError(
            f"{expected} processes were asked for and {actual} came up; "
            f"start them with `evenhand train … --processes {expected}` or with torchrun"
        )


def _scheduled(trainer: Any, recipe: Recipe) -> None:
    """Our schedule in place of the trainer's, whose first step has a learning rate of 0."""

    def create_scheduler(
        num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> Any:
        if trainer.lr_scheduler is None:
            used = trainer.optimizer if optimizer is None else optimizer
            trainer.lr_scheduler = LambdaLR(used, rates(recipe, num_training_steps))
        return trainer.lr_scheduler

    trainer.create_scheduler = create_scheduler


def _logged(history: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(entry[name]) for entry in history if entry.get(name) is not None]


def _last(history: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The newest value of each number that was logged."""
    latest: dict[str, float] = {}
    for entry in history:
        for name, value in entry.items():
            if isinstance(value, int | float) and name not in ("step", "epoch"):
                latest[name] = float(value)
    return latest
