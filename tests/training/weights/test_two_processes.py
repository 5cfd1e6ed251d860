"""Two processes: both are there, and they take the steps that one takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli import train_worker
from evenhand.training import launch
from evenhand.training.recipes import RewardRecipe, SftRecipe
from tests.errors import assert_names
from tests.training.weights.logged import scalars

ENTRY = "from evenhand.cli import main; main()"
COMMON = ("batch=8", "micro_batch=4", "threads=1")
QUICK = ("scale_samples=4", "scale_tokens=4")


@pytest.mark.parametrize(
    ("stage", "settings"), [("sft", COMMON), ("reward", (*COMMON, *QUICK))], ids=["sft", "reward"]
)
def test_two_processes_take_the_steps_of_one(
    stage: str, settings: tuple[str, ...], tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    two = tmp_path / "two"
    command = [sys.executable, "-c", ENTRY, "train", stage, "--model", str(tiny)]
    command += ["--pairs", str(toy_pairs), "--out", str(two), "--processes", "2", "--json"]
    for setting in settings:
        command += ["--set", setting]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 4, done.stderr  # three steps cannot show that the loss fell
    assert json.loads(done.stdout)["world_size"] == 2

    recipe = launch.recipe_of(stage, full=False, assignments=settings)
    assert isinstance(recipe, SftRecipe | RewardRecipe)
    one = launch.TrainingJob(
        stage=stage,
        recipe=recipe,
        model=tiny,
        pairs=toy_pairs,
        config="default",
        out=tmp_path / "one",
    )
    launch.run(one, lambda _: None)
    losses = scalars(two, "train/loss")
    assert len(losses) == 3
    assert losses == pytest.approx(scalars(one.out, "train/loss"), abs=1e-4)


def test_fewer_processes_than_asked_for_end_the_training(
    tiny: Path, toy_pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `accelerate launch --cpu --num_processes 2` does it: one comes up, and nothing is said."""
    job = launch.TrainingJob(
        stage="sft",
        recipe=SftRecipe(batch=8),
        model=tiny,
        pairs=toy_pairs,
        config="default",
        out=tmp_path / "out",
    )
    assert train_worker.main(str(job.save()), "2") == 1
    assert_names(capsys.readouterr().err.replace("\n", " "), "2 processes", 1)
    assert not (job.out / "model").exists()
