"""A training that is killed with SIGKILL and resumed ends with the very same weights."""

import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.training import launch
from evenhand.training.events import Note, TrainingStep
from evenhand.training.folders import CHECKSUMS, newest_whole
from evenhand.training.recipes import DpoRecipe, RewardRecipe, RlooRecipe, SftRecipe

ROOT = Path(__file__).parents[3]
SAVED = 4  # of 6 steps, with a checkpoint at every second; each is killed before step 6 is kept
# Where each is killed, and the last file that it had written of checkpoint-6 by then.
KILLED = {
    "sft": ("optimizer", "adapter_model.safetensors"),
    "dpo": ("checksums", "trainer_state.json"),
    "reward": ("step", None),
    "rloo": ("random", "scheduler.pt"),
}


def _jobs(tiny: Path, pairs: Path, reward: Path, out: Path) -> dict[str, launch.TrainingJob]:
    shared = {"batch": 4, "threads": 1, "save_every": 2, "max_steps": 6}
    recipes = {
        "sft": SftRecipe(**shared),  # type: ignore[arg-type]
        "dpo": DpoRecipe(**shared),  # type: ignore[arg-type]
        "reward": RewardRecipe(**shared, scale_samples=4, scale_tokens=4),  # type: ignore[arg-type]
        "rloo": RlooRecipe(**shared, learning_rate=1e-3, max_new_tokens=8),  # type: ignore[arg-type]
    }
    return {
        stage: launch.TrainingJob(
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
) -> dict[str, launch.TrainingJob]:
    jobs = _jobs(tiny, toy_pairs, tiny_reward, tmp_path_factory.mktemp("killed"))
    told = [word for name, job in jobs.items() for word in (KILLED[name][0], str(job.save()))]
    command = [sys.executable, "-m", "tests.training.weights.killed", *told]
    subprocess.run(command, cwd=ROOT, check=True, timeout=800)
    return jobs


def test_no_flipped_bit_of_a_checkpoint_is_loaded(
    killed: dict[str, launch.TrainingJob], tmp_path: Path
) -> None:
    shutil.copytree(killed["sft"].out / "checkpoints", tmp_path / "checkpoints")
    newest, draw = tmp_path / "checkpoints" / f"checkpoint-{SAVED}", random.Random(0)
    shutil.rmtree(tmp_path / "checkpoints" / "checkpoint-6")
    files = sorted(newest.iterdir())
    assert len(files) > 8
    for number in range(80):
        file = files[number % len(files)]
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        file.write_bytes(flipped)
        told: list[TrainingStep | Note] = []
        taken = newest_whole(tmp_path / "checkpoints", told.append)
        assert taken == newest.with_name("checkpoint-2"), file.name
        assert [type(event) for event in told] == [Note]
        file.write_bytes(whole)
    assert newest_whole(tmp_path / "checkpoints", lambda _: None) == newest


@pytest.mark.parametrize("stage", KILLED)
def test_a_killed_training_goes_on_to_bit_identical_weights(
    killed: dict[str, launch.TrainingJob], stage: str, tmp_path: Path
) -> None:
    job, (_, last) = killed[stage], KILLED[stage]
    assert not (job.out / "model").exists()
    checkpoints = job.out / "checkpoints"
    kept = {path.name for path in checkpoints.glob("checkpoint-*")}
    assert kept == {"checkpoint-2", "checkpoint-4", *(["checkpoint-6"] if last else [])}
    if last is not None:  # it was really inside the save
        assert (checkpoints / "checkpoint-6" / last).is_file()
        assert not (checkpoints / "checkpoint-6" / CHECKSUMS).exists()
    told: list[TrainingStep | Note] = []
    resumed = launch.run(job, told.append)
    whole = launch.run(replace(job, out=tmp_path), lambda _: None)
    assert [e.step for e in told if isinstance(e, TrainingStep)] == [5, 6]
    notes = [event.text for event in told if isinstance(event, Note)]
    passed_over = [note for note in notes if "checkpoint-6" in note]
    assert len(passed_over) == (last is not None)
    assert any("step 4" in note for note in notes)
    assert json.loads((job.out / "train.json").read_text())["resumed_from"] == [SAVED]
    for name in ("model.safetensors", "config.json"):
        assert (resumed / name).read_bytes() == (whole / name).read_bytes(), name
