"""RLOO: what it is rewarded with, how far it may move, and what it refuses."""

import json
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.training import probes, rloo
from evenhand.training.events import Note, TrainingStep
from evenhand.training.recipes import RlooRecipe
from evenhand.training.reward_model import RewardModel
from tests.errors import raises_naming
from tests.training.weights.conftest import pair_rows, write_pairs
from tests.training.weights.logged import scalars

PROMPT = [{"role": "user", "content": "Your view on gardening?"}]


def test_the_reward_is_that_of_the_decoded_text_through_the_reward_model_s_template(
    tiny_reward: Path,
) -> None:
    model = RewardModel.load(tiny_reward)
    said = ["Ask each person.", "All of them are bad at it."]
    completions = [[{"role": "assistant", "content": text}] for text in said]
    found = rloo.rewarded(model)(prompts=[PROMPT, PROMPT], completions=completions)
    ids = [model.ids(PROMPT, text) for text in said]
    by_hand = [(raw - model.scale.shift) / model.scale.scale for raw in model.raw_of_ids(ids)]
    assert found == pytest.approx(by_hand)


def test_kl_is_logged_at_each_step_and_starts_at_zero(
    tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    told: list[TrainingStep | Note] = []
    recipe = RlooRecipe(learning_rate=1e-3, max_new_tokens=8, threads=1, save_every=99)
    out = tmp_path / "rloo"
    rloo.train(recipe, tiny, toy_pairs, out, reward=tiny_reward, force=True, tell=told.append)
    steps = [event for event in told if isinstance(event, TrainingStep)]
    assert [step.step for step in steps] == [1, 2, 3, 4, 5, 6]  # 12 prompts, 2 answers, 4 a batch
    assert steps[0].kl == pytest.approx(0.0, abs=1e-6)
    assert all(None not in (step.kl, step.reward, step.length, step.loss) for step in steps)
    assert len(scalars(out, "train/kl")) == 6


def test_training_stops_where_kl_passes_its_target(
    tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    told: list[TrainingStep | Note] = []
    recipe = RlooRecipe(
        full=True,
        learning_rate=2e-3,
        max_new_tokens=8,
        epochs=4.0,
        target_kl=0.05,
        threads=1,
        save_every=99,
    )
    rloo.train(recipe, tiny, toy_pairs, tmp_path, reward=tiny_reward, force=True, tell=told.append)
    record = json.loads((tmp_path / "train.json").read_text())
    stop = record["stopped_at_kl"]
    assert stop is not None
    assert record["steps"] == stop < 24
    kls = scalars(tmp_path, "train/kl")
    fours = [sum(kls[end - 4 : end]) / 4 for end in range(4, len(kls) + 1)]
    assert fours[-1] > 0.05
    assert all(mean <= 0.05 for mean in fours[:-1])
    assert any(isinstance(event, Note) and "KL is" in event.text for event in told)


def test_without_a_kl_term_there_is_no_training() -> None:
    with raises_naming(UserError, "beta", 0):
        RlooRecipe(beta=0.0)


def test_prompts_that_fill_no_batch_are_refused_before_anything_is_written(
    tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    recipe = RlooRecipe(batch=26, micro_batch=26)  # of 12 prompts come 24 answers
    with raises_naming(UserError, "--set batch=24"):
        rloo.train(recipe, tiny, toy_pairs, tmp_path / "out", reward=tiny_reward, force=True)
    assert not (tmp_path / "out").exists()


def test_prompts_that_fit_and_fill_no_batch_train_nothing(
    tiny: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    rows = pair_rows(("gardening", "gardening " * 99))  # one of two prompts is too long
    pairs, out = write_pairs(tmp_path / "pairs", rows, set()), tmp_path / "out"
    recipe = RlooRecipe(batch=4, micro_batch=4, max_prompt=64, max_new_tokens=8, max_steps=2)
    with raises_naming(UserError, "--set batch=2"):
        rloo.train(recipe, tiny, pairs, out, reward=tiny_reward, force=True)
    assert not (out / "model").exists()


def test_a_reward_model_without_probes_drives_nothing(
    tiny: Path, toy_pairs: Path, tiny_reward: Path, tmp_path: Path
) -> None:
    assert not (tiny_reward / probes.CERTIFICATE_FILE).exists()
    with raises_naming(UserError, tiny_reward, "audit reward", "--force"):
        rloo.train(RlooRecipe(), tiny, toy_pairs, tmp_path / "out", reward=tiny_reward)
    assert not (tmp_path / "out").exists()
