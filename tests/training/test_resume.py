"""A training that is killed with SIGKILL and resumed ends with the very same weights."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.training import launch
from evenhand.training.events import Note, Step
from evenhand.training.recipes import RewardRecipe, RlooRecipe, SftRecipe

TESTS = Path(__file__).parents[1]
KILLED_AT, SAVED = 5, 4  # of 6 steps, with a checkpoint at every second


def _jobs(tiny: Path, pairs: Path, reward: Path, out: Path) -> dict[str, launch.Job]:
    shared = {"batch": 4, "threads": 1, "save_every": 2}
    recipes = {
        "sft": SftRecipe(**shared),  # type: ignore[arg-type]
        "reward": RewardRecipe(**shared, scale_samples=4, scale_tokens=4),  # type: ignore[arg-type]
        "rloo": RlooRecipe(**shared, learning_rate=1e-3, max_new_tokens=8),  # type: ignore[arg-type]
    }
    return {
        stage: launch.Job(
            stage=stage,
            recipe=recipe,
            model=tiny,
            pairs=pairs,
            config="default",
            out=out / stage,
            reward=reward if stage == "rloo" else None,
            force=stage == "rloo",
        )
        for stage, recipe in recipes.items()
    }


@pytest.fixture(scope="module")
def killed(
    tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, launch.Job]:
    """Each stage, killed after step 5."""
    jobs = _jobs(tiny, toy_pairs, tiny_reward, tmp_path_factory.mktemp("killed"))
    files = [str(job.save()) for job in jobs.values()]
    command = [sys.executable, "-m", "training.killed", str(KILLED_AT), *files]
    subprocess.run(command, cwd=TESTS, check=True, timeout=280)
    return jobs


@pytest.mark.parametrize("stage", ["sft", "reward", "rloo"])
def test_a_killed_training_goes_on_to_bit_identical_weights(
    killed: dict[str, launch.Job], stage: str, tmp_path: Path
) -> None:
    job = killed[stage]
    assert not (job.out / "model").exists()
    assert (job.out / "checkpoints" / f"checkpoint-{SAVED}").is_dir()
    _plant_a_truncated_newer_one(job.out / "checkpoints")
    told: list[Step | Note] = []
    resumed = launch.run(job, told.append)
    whole = launch.run(replace(job, out=tmp_path), lambda _: None)
    assert [e.step for e in told if isinstance(e, Step)] == [5, 6]
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any("checkpoint-6 is passed over" in note for note in notes)
    assert any("goes on from step 4" in note for note in notes)
    assert json.loads((job.out / "train.json").read_text())["resumed_from"] == [SAVED]
    for name in ("model.safetensors", "config.json"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes(), name


def _plant_a_truncated_newer_one(checkpoints: Path) -> None:
    """As a kill while it is written leaves it; the trainer itself would take it and fail."""
    newer = checkpoints / "checkpoint-6"
    shutil.copytree(checkpoints / f"checkpoint-{SAVED}", newer)
    (newer / "trainer_state.json").unlink()
    weights = newer / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
