"""A training says what it changed, and one that changed nothing does not say done."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.training import from_pairs, ppo, reward, rloo
from evenhand.training.recipes import (
    SCHEDULES,
    DpoRecipe,
    PpoRecipe,
    Recipe,
    RewardRecipe,
    RlooRecipe,
    SftRecipe,
)
from evenhand.training.record import objective, outcome, statements, weight_change
from evenhand.training.stage import rates
from tests.errors import assert_names, raises_naming
from tests.training.weights.conftest import pair_rows, write_pairs

RL: dict[str, Any] = {"max_new_tokens": 8, "threads": 1, "max_steps": 2}


def _record(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "train.json").read_text())
    return found


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    warmup=st.floats(0, 1, exclude_max=True),
    steps=st.integers(1, 300),
)
def test_every_step_of_every_schedule_has_a_rate_above_zero(
    schedule: str, warmup: float, steps: int
) -> None:
    share = rates(Recipe(schedule=schedule, warmup=warmup), steps)
    assert all(0 < share(step) <= 1 for step in range(steps))


@pytest.mark.parametrize(
    "settings_", [{"max_steps": 0}, {"max_steps": -1}, {"warmup": 1.0}, {"schedule": "greedy"}]
)
def test_a_recipe_that_could_train_nothing_is_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Recipe(**settings_)


@pytest.mark.parametrize(
    ("train", "recipe"),
    [
        (from_pairs.sft, SftRecipe(batch=24, max_steps=1, threads=1)),
        (from_pairs.dpo, DpoRecipe(batch=24, max_steps=1, threads=1)),
        (
            reward.train,
            RewardRecipe(batch=24, max_steps=1, threads=1, scale_samples=4, scale_tokens=4),
        ),
    ],
)
def test_the_only_step_of_a_training_changes_weights(
    train: Any, recipe: Recipe, tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    folder = train(recipe, tiny, toy_pairs, tmp_path)
    before, after = load_file(tiny / "model.safetensors"), load_file(folder / "model.safetensors")
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    record = _record(tmp_path)
    assert changed
    assert record["steps"] == 1
    head = train is reward.train  # it is no tensor of the base
    assert record["weights"]["changed"] - head <= len(changed) <= record["weights"]["changed"]
    assert record["outcome"] == "inconclusive"  # one step cannot show that the loss fell
    assert record["objective"]["trend"] == "too_few_steps"


@pytest.mark.parametrize(
    ("train", "recipe", "what"),
    [
        (from_pairs.sft, SftRecipe(), "statements"),
        (from_pairs.dpo, DpoRecipe(), "pairs"),
        (reward.train, RewardRecipe(), "pairs"),
    ],
)
def test_rows_that_fill_no_batch_are_refused_with_how_many_are_needed(
    train: Any, recipe: Recipe, what: str, tiny: Path, tmp_path: Path
) -> None:
    pairs = write_pairs(tmp_path / "pairs", pair_rows()[:12], set())
    with raises_naming(UserError, f"12 {what}", 32, "--set batch=12"):
        train(recipe, tiny, pairs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rows", "processes", "batch", "micro"),
    [(12, 1, 12, 4), (13, 1, 12, 4), (3, 1, 3, 3), (13, 2, 8, 4), (5, 2, 4, 2), (31, 1, 28, 4)],
)
def test_the_smaller_batch_that_is_proposed_is_accepted(
    rows: int, processes: int, batch: int, micro: int
) -> None:
    with raises_naming(UserError, f"--set batch={batch}", f"--set micro_batch={micro}"):
        Recipe().require_step(rows, "pairs", processes)
    smaller = Recipe(batch=batch, micro_batch=micro)
    smaller.require_step(rows, "pairs", processes)
    assert smaller.accumulation(processes) >= 1


@pytest.mark.parametrize("stage", ["sft", "dpo", "reward"])
def test_a_training_that_leaves_the_weights_as_they_were_ends_with_code_2(
    stage: str, tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    """A rate too small for 32 bits: the weights written equal the base bit by bit."""
    arguments = ["train", stage, "--model", str(tiny), "--pairs", str(toy_pairs), "--json"]
    arguments += ["--out", str(tmp_path)]
    few = ["scale_samples=4", "scale_tokens=4"] if stage == "reward" else []
    for setting in ("batch=8", "max_steps=2", "threads=1", "learning_rate=1e-30", *few):
        arguments += ["--set", setting]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert found["outcome"] == "weights_equal"
    assert found["weights"]["changed"] == 0
    assert found["weights"]["relative_norm"] == 0
    assert found["weights"]["tensors"] == len(load_file(tmp_path / "model/model.safetensors"))
    card = (tmp_path / "model/README.md").read_text()
    assert "for less bias" not in card
    assert_names(card, "Weights equal", "0 of")
    # Asked again, the finished folder gives the same code.
    plain = CliRunner().invoke(app, [a for a in arguments if a != "--json"])
    assert plain.exit_code == 2
    assert "NOTHING TRAINED" in plain.stderr
    assert "next:" not in plain.stderr


@pytest.mark.parametrize("stage", [rloo, ppo])
def test_rl_without_an_effect_on_the_weights_is_recorded_as_such(
    stage: Any, tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    kind = RlooRecipe if stage is rloo else PpoRecipe
    recipe = kind(learning_rate=1e-30, full=True, **RL)
    stage.train(recipe, tiny, toy_pairs, tmp_path, reward=tiny_reward, force=True)
    record = _record(tmp_path)
    assert record["steps"] == 2
    assert record["outcome"] == "weights_equal"
    assert record["objective"]["name"] == "reward"


def test_a_training_whose_loss_falls_ends_with_code_0(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    arguments = ["train", "sft", "--model", str(tiny), "--pairs", str(toy_pairs), "--full"]
    arguments += ["--out", str(tmp_path), "--json"]
    for setting in ("batch=8", "epochs=3", "learning_rate=3e-3", "threads=1"):
        arguments += ["--set", setting]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["outcome"] == "trained"
    assert found["objective"]["last"] < found["objective"]["first"]
    assert 0 < found["weights"]["relative_norm"] < 1


def test_weights_are_compared_tensor_by_tensor(tmp_path: Path) -> None:
    """Worked by hand: the change is (3, 4) on a base of norm 13, so 5/13."""
    base, model = tmp_path / "base", tmp_path / "model"
    for folder in (base, model):
        folder.mkdir()
    same = torch.tensor([[12.0]])
    begun = {"a": torch.tensor([3.0, 4.0]), "b": same, "c": torch.zeros(2, 2)}
    ended = {"a": torch.tensor([6.0, 8.0]), "b": same, "c": torch.zeros(3, 2), "new": torch.ones(1)}
    save_file(begun, base / "model.safetensors")
    save_file(ended, model / "model.safetensors")
    found = weight_change(base, model)
    assert (found["tensors"], found["changed"], found["not_compared"]) == (3, 1, 1)
    assert found["relative_norm"] == pytest.approx(5 / 13)
    with_head = weight_change(base, model, lambda: {"new": torch.zeros(1)})
    assert (with_head["tensors"], with_head["changed"], with_head["not_compared"]) == (4, 2, 0)


def test_rounding_to_the_type_of_the_written_weights_is_no_change(tmp_path: Path) -> None:
    base, model = tmp_path / "base", tmp_path / "model"
    for folder, kind in ((base, torch.float32), (model, torch.bfloat16)):
        folder.mkdir()
        save_file({"a": torch.tensor([math.pi]).to(kind)}, folder / "model.safetensors")
    assert weight_change(base, model)["changed"] == 0
    assert weight_change(model, base)["changed"] == 1


@pytest.mark.parametrize(
    ("name", "values", "trend"),
    [
        ("loss", [5, 4, 3, 2, 1], "improved"),
        ("loss", [1, 2, 3, 4, 5], "regressed"),
        ("reward", [1, 2, 3, 4, 5], "improved"),
        ("reward", [5, 4, 3, 2, 1], "regressed"),
        ("loss", [4, 3, 2, 1], "too_few_steps"),
        ("loss", [], "too_few_steps"),
        ("loss", [0.693] * 20, "inconclusive"),
        ("loss", [1, math.nan, 1, 1, 1], "not_finite"),
    ],
)
def test_the_trend_of_an_objective(name: str, values: list[float], trend: str) -> None:
    assert objective(name, values)["trend"] == trend


def test_five_steady_steps_have_the_p_of_one_order_and_its_reverse_of_all() -> None:
    assert objective("loss", [5, 4, 3, 2, 1])["p"] == pytest.approx(2 / math.factorial(5))


def test_noise_alone_moves_an_objective_in_one_training_of_twenty_at_most() -> None:
    drawn = random.Random(1)
    moved = sum(
        objective("loss", [drawn.gauss(2, 0.1) for _ in range(24)])["trend"] != "inconclusive"
        for _ in range(400)
    )
    assert moved <= 400 * 0.05 + 2 * math.sqrt(400 * 0.05 * 0.95)


WEIGHTS = {"tensors": 3, "changed": 2, "relative_norm": 0.1, "finite": True}


@pytest.mark.parametrize(
    ("steps", "rates_", "weights", "trend", "expected"),
    [
        (0, [], {}, "too_few_steps", "no_steps"),
        (2, [0.0, 0.0], {}, "improved", "zero_rate"),
        (2, [0.0, 0.1], {"changed": 0, "relative_norm": 0.0}, "improved", "weights_equal"),
        (2, [0.1], {"relative_norm": None}, "improved", "trained"),
        (2, [0.1], {"relative_norm": 1e-12}, "improved", "weights_equal"),
        (2, [0.1], {"finite": False}, "improved", "not_finite"),
        (9, [0.1], {}, "inconclusive", "inconclusive"),
        (9, [0.1], {}, "regressed", "inconclusive"),
        (9, [0.1], {"tensors": 0, "relative_norm": None}, "improved", "inconclusive"),
        (9, [0.1], {}, "improved", "trained"),
    ],
)
def test_each_way_to_train_nothing_has_its_word(
    steps: int, rates_: list[float], weights: dict[str, Any], trend: str, expected: str
) -> None:
    assert outcome(steps, rates_, WEIGHTS | weights, {"trend": trend}) == expected


def test_a_record_of_a_training_that_runs_states_nothing() -> None:
    assert statements({"state": "running"}) == []
