"""One training as a file of settings, so that several processes can be started on the same one."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from evenhand.core.errors import UserError, choices_for
from evenhand.training import record
from evenhand.training.config import prepare
from evenhand.training.events import Tell, kept, silent
from evenhand.training.folders import claim, write
from evenhand.training.recipes import (
    DpoRecipe,
    PpoRecipe,
    Recipe,
    RewardRecipe,
    RlooRecipe,
    SftRecipe,
)

RECIPES: dict[str, type[Recipe]] = {
    "sft": SftRecipe,
    "reward": RewardRecipe,
    "dpo": DpoRecipe,
    "rloo": RlooRecipe,
    "ppo": PpoRecipe,
}
# Each stage is imported when it runs: the trainers are slow to import.
_TRAINERS = {
    "sft": "from_pairs:sft",
    "reward": "reward:train",
    "dpo": "from_pairs:dpo",
    "rloo": "rloo:train",
    "ppo": "ppo:train",
}
_LOOK_SECONDS = 0.5  # our choice: so often it is seen whether several processes are to stop
FILE = "job.json"
WORKER = "evenhand.cli.train_worker"  # the module that each of several processes runs


def recipe_of(stage: str, *, full: bool, assignments: Sequence[str]) -> Recipe:
    """Build the recipe of a stage.

    Args:
        stage: The name of the stage, such as "dpo".
        full: Whether all weights are trained instead of adapters.
        assignments: Settings such as `batch=8` that replace those of the recipe.

    Returns:
        The recipe.

    Raises:
        UserError: If the recipe does not have a setting, or a value does not fit.
    """
    kind = RECIPES[stage]
    recipe = kind().full_weights() if full else kind()
    settings = asdict(recipe)
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: write it as name=value")
        if name not in settings:
            raise UserError(f"{stage} has no setting {name!r}. {choices_for(name, settings)}")
        settings[name] = value
    try:
        return TypeAdapter(kind).validate_python(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"--set {first['loc'][0]}: {first['msg']}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    stage: str
    recipe: Recipe
    model: Path
    pairs: Path
    config: str
    out: Path
    reward: Path | None = None
    force: bool = False

    def save(self) -> Path:
        claim(self.out, self.model, self.pairs, self.reward)
        self.out.mkdir(parents=True, exist_ok=True)
        file = self.out / FILE
        write(file, json.dumps(asdict(self), indent=1, default=str) + "\n")
        return file

    @classmethod
    def load(cls, file: Path) -> Self:
        settings = json.loads(file.read_text())
        paths = ("model", "pairs", "out", *(["reward"] if settings["reward"] else []))
        recipe = RECIPES[settings["stage"]](**settings["recipe"])
        return cls(**{**settings, "recipe": recipe, **{p: Path(settings[p]) for p in paths}})


def run(job: TrainingJob, tell: Tell) -> Path:
    """In this process, or in each of those that a launcher started."""
    prepare()
    more: dict[str, Any] = {"config": job.config, "tell": kept(job.out, tell)}
    if job.stage in ("rloo", "ppo"):
        more |= {"reward": job.reward, "force": job.force}
    module, _, name = _TRAINERS[job.stage].partition(":")
    stage = getattr(import_module(f"evenhand.training.{module}"), name)
    folder: Path = stage(job.recipe, job.model, job.pairs, job.out, **more)
    return folder


def train(
    job: TrainingJob,
    processes: int = 1,
    tell: Tell = silent,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Train in this process, or in several that torchrun starts.

    Args:
        job: The stage, the recipe and the folders.
        processes: How many processes train together.
        tell: Receives the events of a training in this process.
        stopped: Says whether the processes that torchrun started are to be ended.

    Returns:
        The record of the training: its outcome, steps, weights and metrics.

    Raises:
        UserError: If the recipe cannot be shared by the processes, or one of them fails.
    """
    if processes < 1:
        raise UserError(f"a training needs 1 process at least, not {processes}")
    prepare()
    job.recipe.accumulation(processes)  # refuses what the processes cannot share
    file = job.save()
    if processes == 1:
        run(job, tell)
    else:
        _together(command(WORKER, file, processes), processes, stopped)
    return record.load(job.out) or {}


def _together(words: list[str], processes: int, stopped: Callable[[], bool]) -> None:
    with subprocess.Popen(words) as started:  # noqa: S603 our own command
        try:
            ended = _ended(started, stopped)
        except BaseException:  # Ctrl-C reaches them too; nothing trains on when this returns
            started.terminate()
            raise
    if ended:
        raise UserError(
            f"training with {processes} processes ended with code {ended}; what it said is above. "
            "The same command goes on from its last checkpoint"
        )


def _ended(started: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> int:
    """Wait for a process, or end it when it is to stop; its code."""
    while True:
        try:
            return started.wait(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if stopped():
                started.terminate()
                return started.wait()


def command(module: str, job: Path, processes: int) -> list[str]:
    """Give the command that starts several training processes.

    It uses torchrun: on a CPU, `accelerate launch` starts a single process whatever is asked.

    Args:
        module: The module that each process runs.
        job: The job file.
        processes: The number of processes.

    Returns:
        The words of the command.
    """
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    return [sys.executable, *start, "-m", module, str(job), str(processes)]
