"""PPO that is killed, damaged or spread over processes takes the steps that it would have taken."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from evenhand.core.errors import UserError
from evenhand.training import ppo
from evenhand.training.events import Note, TrainingStep
from evenhand.training.recipes import PpoRecipe
from tests.errors import assert_names, raises_naming

RECIPE = PpoRecipe(
    max_new_tokens=10,
    max_steps=6,
    micro_batch=2,
    learning_rate=5e-3,
    critic_learning_rate=5e-3,
    target_kl=10.0,
    epochs=3,
    save_every=2,
    threads=1,
)
WORKER = Path(__file__).with_name("ppo_worker.py")


@pytest.fixture(scope="module")
def reward(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import (  # noqa: PLC0415
        AutoModelForSequenceClassification,
        AutoTokenizer,
    )

    folder = tmp_path_factory.mktemp("reward")
    torch.manual_seed(1)
    AutoModelForSequenceClassification.from_pretrained(tiny, num_labels=1).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def unbroken(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[float | None]]:
    """The model of a training that nothing happened to, and its losses."""
    told: list[Any] = []
    out = tmp_path_factory.mktemp("unbroken")
    model = ppo.train(RECIPE, tiny, toy_pairs, out, reward=reward, force=True, tell=told.append)
    return model, [event.loss for event in told if isinstance(event, TrainingStep)]


def _work(tiny: Path, pairs: Path, reward: Path, out: Path, *before: str, **more: Any) -> int:
    given = {
        "model": str(tiny),
        "pairs": str(pairs),
        "reward": str(reward),
        "out": str(out),
        "recipe": asdict(RECIPE),
        **more,
    }
    command = [sys.executable, *before, str(WORKER), json.dumps(given)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, check=False, timeout=800).returncode


def _same(one: Path, other: Path) -> bool:
    first, second = (load_file(folder / "model.safetensors") for folder in (one, other))
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


def test_a_run_killed_in_a_save_resumes_to_the_same_bits(
    tiny: Path, toy_pairs: Path, reward: Path, unbroken: tuple[Path, Any], tmp_path: Path
) -> None:
    ended = _work(tiny, toy_pairs, reward, tmp_path, kill_at=6)
    assert ended == -signal.SIGKILL
    assert not (tmp_path / "model").exists()
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert left == [".checkpoint-6.part", "checkpoint-2", "checkpoint-4"]
    assert (tmp_path / "checkpoints/.checkpoint-6.part/trainer_state.json").exists()

    newest = tmp_path / "checkpoints/checkpoint-4/moments.safetensors"
    flipped = bytearray(newest.read_bytes())
    flipped[-1] ^= 1  # and the disk lost a bit as well
    newest.write_bytes(flipped)
    told: list[Any] = []
    model = ppo.train(
        RECIPE, tiny, toy_pairs, tmp_path, reward=reward, force=True, tell=told.append
    )
    notes = [event.text for event in told if isinstance(event, Note)]
    passed_over, resumed = notes
    assert_names(passed_over, "checkpoint-4", "moments.safetensors")
    assert_names(resumed, "step 2")
    assert [event.step for event in told if isinstance(event, TrainingStep)] == [3, 4, 5, 6]
    assert json.loads((tmp_path / "train.json").read_text())["resumed_from"] == [2]
    assert _same(model, unbroken[0])
    assert not _same(model, tiny)


def test_the_record_says_what_was_trained_and_the_log_holds_each_scalar(
    tiny: Path, toy_pairs: Path, reward: Path, unbroken: tuple[Path, Any]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    out = unbroken[0].parent
    record = json.loads((out / "train.json").read_text())
    assert (record["stage"], record["state"], record["steps"]) == ("ppo", "done", 6)
    assert (record["world_size"], record["stopped_at_kl"]) == (1, None)
    assert record["recipe"]["batch"]["source"].startswith("paper 002")
    assert record["prompts"] == {"used": 12, "left_out": 0}
    assert record["metrics"]["first_pass_gap"] == 0.0
    assert not list(out.rglob("*.bin"))

    log = EventAccumulator(str(out / "logs"))
    log.Reload()
    for name in ("loss", "value_loss", "reward", "kl", "length", "clip_fraction", "entropy"):
        assert [event.step for event in log.Scalars(f"train/{name}")] == [1, 2, 3, 4, 5, 6]

    told: list[Any] = []
    again = ppo.train(RECIPE, tiny, toy_pairs, out, reward=reward, force=True, tell=told.append)
    assert again == unbroken[0]
    assert "trained already" in told[0].text


def test_an_unprobed_reward_model_is_refused(
    tiny: Path, toy_pairs: Path, reward: Path, tmp_path: Path
) -> None:
    with raises_naming(UserError, reward, "audit reward", "--force"):
        ppo.train(RECIPE, tiny, toy_pairs, tmp_path, reward=reward)


def test_two_processes_share_a_batch_and_take_the_same_steps(
    tiny: Path, toy_pairs: Path, reward: Path, unbroken: tuple[Path, Any], tmp_path: Path
) -> None:
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
    assert _work(tiny, toy_pairs, reward, tmp_path, *torchrun) == 0
    assert json.loads((tmp_path / "train.json").read_text())["world_size"] == 2
    losses = json.loads((tmp_path / "losses.json").read_text())
    assert losses == pytest.approx(unbroken[1], abs=1e-3)
