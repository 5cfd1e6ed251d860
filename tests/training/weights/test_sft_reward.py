"""Supervised fine-tuning and the reward model on the tiny model."""

import hashlib
import json
import math
from pathlib import Path
from statistics import fmean, stdev

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from evenhand.core.errors import UserError
from evenhand.training import data, from_pairs, reward
from evenhand.training.recipes import DpoRecipe, RewardRecipe, SftRecipe
from evenhand.training.reward_model import RewardModel, RewardScale
from evenhand.training.weights import load_scalar, load_tokenizer, prompt_ids, render
from tests.errors import assert_names, raises_naming
from tests.training.weights.conftest import byte_tokenizer, pair_rows, write_pairs
from tests.training.weights.logged import scalars

SHIPPED = {
    "README.md",
    "chat_template.jinja",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


def test_sft_learns_the_chosen_answers_and_not_the_prompts(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    recipe = SftRecipe(full=True, learning_rate=3e-3, batch=8, epochs=4.0, threads=1)
    folder = from_pairs.sft(recipe, tiny, toy_pairs, tmp_path / "sft")
    logged = scalars(tmp_path / "sft", "train/loss")
    assert logged[-1] < logged[0] - 1

    def losses(where: Path) -> tuple[float, float]:
        """Mean negative log-probability of the tokens of the prompts and of the answers."""
        model, tokenizer = AutoModelForCausalLM.from_pretrained(where), byte_tokenizer()
        asked: list[float] = []
        said: list[float] = []
        for row in data.rows(toy_pairs)[:4]:
            ids = render(tokenizer, row["prompt"], data.response(row, "chosen"), 512)
            start = len(prompt_ids(tokenizer, row["prompt"]))
            with torch.no_grad():
                logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
            each = [-float(logs[at, token]) for at, token in enumerate(ids[1:])]
            asked += each[: start - 1]
            said += each[start - 1 :]
        return fmean(asked), fmean(said)

    before, after = losses(tiny), losses(folder)
    assert before[1] - after[1] > 1  # the answers
    assert before[1] - after[1] > 2 * (before[0] - after[0])  # the prompts only go along


def test_a_finished_folder_is_what_a_hub_expects_and_nothing_that_runs_code(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    recipe = SftRecipe(full=True, batch=8, max_steps=1, threads=1)
    folder = from_pairs.sft(recipe, tiny, toy_pairs, tmp_path)
    names = {path.name for path in folder.iterdir()}
    assert names >= SHIPPED
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
    assert all(path.stat().st_mode & 0o044 for path in folder.iterdir())
    record = json.loads((tmp_path / "train.json").read_text())
    assert record["state"] == "done"
    assert record["recipe"]["epochs"]["source"].startswith("paper 002")
    batch = record["recipe"]["batch"]
    assert batch["value"] == 8
    assert_names(batch["source"], "this run")
    assert not (tmp_path / "checkpoints").exists()
    # A second call finds it done, another recipe is refused.
    assert from_pairs.sft(recipe, tiny, toy_pairs, tmp_path) == folder
    with raises_naming(UserError, "another recipe"):
        from_pairs.sft(
            SftRecipe(full=True, batch=4, max_steps=1, threads=1), tiny, toy_pairs, tmp_path
        )


def test_a_reward_model_orders_held_out_pairs(tiny_reward: Path, toy_pairs: Path) -> None:
    held_out = data.held_out(toy_pairs)
    model = RewardModel.load(tiny_reward)
    prompts = [row["prompt"] for row in held_out]
    good = model.score(prompts, [data.response(row, "chosen") for row in held_out])
    bad = model.score(prompts, [data.response(row, "rejected") for row in held_out])
    assert all(above > below for above, below in zip(good, bad, strict=True))
    record = json.loads((tiny_reward.parent / "train.json").read_text())
    assert record["metrics"]["eval_accuracy"] == 1.0


def test_the_first_loss_is_the_paper_s_with_the_margin_worked_out_apart(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    rows = data.rows(toy_pairs)
    recipe = RewardRecipe(
        batch=24, micro_batch=24, max_steps=1, threads=1, scale_samples=4, scale_tokens=4
    )
    reward.train(recipe, tiny, toy_pairs, tmp_path)
    tokenizer = load_tokenizer(tiny)
    fresh = RewardModel(load_scalar(tiny, tokenizer, recipe).eval(), tokenizer, RewardScale())
    prompts = [row["prompt"] for row in rows]
    good = fresh.raw(prompts, [data.response(row, "chosen") for row in rows])
    bad = fresh.raw(prompts, [data.response(row, "rejected") for row in rows])
    expected = fmean(
        math.log1p(math.exp(-(g - b - row["margin"])))
        for g, b, row in zip(good, bad, rows, strict=True)
    )
    assert scalars(tmp_path, "train/loss") == [pytest.approx(expected, abs=1e-5)]


def test_no_pair_is_dropped_for_its_length(tiny: Path, tmp_path: Path) -> None:
    """TRL's reward trainer leaves out a pair above its limit; at 120 tokens that is every one."""
    rows = pair_rows()
    for row in rows:
        for side in ("chosen", "rejected"):
            row[side][0]["content"] *= 5
    pairs = write_pairs(tmp_path / "pairs", rows, set())
    recipe = RewardRecipe(
        batch=8, max_length=120, threads=1, save_every=99, scale_samples=4, scale_tokens=4
    )
    reward.train(recipe, tiny, pairs, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "train.json").read_text())["steps"] == len(rows) // 8


def test_rewards_do_not_depend_on_what_else_is_in_the_batch(tiny_reward: Path) -> None:
    model = RewardModel.load(tiny_reward)
    prompt = [{"role": "user", "content": "Your view on gardening?"}]
    texts = ["Yes.", "Anyone may enjoy gardening; ask each person. " * 4, ""]
    together = model.score([prompt] * 3, texts)
    alone = [model.score([prompt], [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_raw_reward_is_what_a_plain_pipeline_gives(tiny_reward: Path) -> None:
    model = RewardModel.load(tiny_reward)
    prompt = [{"role": "user", "content": "Your view on gardening?"}]
    talk = [*prompt, {"role": "assistant", "content": "Ask each person."}]
    text = AutoTokenizer.from_pretrained(tiny_reward).apply_chat_template(talk, tokenize=False)
    plain = pipeline("text-classification", model=str(tiny_reward), device="cpu")
    (found,) = plain([text], function_to_apply="none")
    assert found["label"] == "reward"
    assert model.raw([prompt], ["Ask each person."]) == [pytest.approx(found["score"], abs=1e-5)]


def test_the_scale_brings_its_samples_to_mean_0_and_deviation_1(tmp_path: Path) -> None:
    raw = [3.0, 5.0, 7.0]  # mean 5, deviation 2
    RewardScale.of(raw).save(tmp_path)
    kept = RewardScale.load(tmp_path)
    assert (kept.shift, kept.scale) == (5.0, 2.0)
    scaled = [(value - kept.shift) / kept.scale for value in raw]
    assert (fmean(scaled), stdev(scaled)) == (0.0, 1.0)
    with raises_naming(UserError, "same reward"):
        RewardScale.of([1.0, 1.0])


def test_a_trained_reward_model_has_the_scale_of_its_samples(tiny_reward: Path) -> None:
    record = json.loads((tiny_reward.parent / "train.json").read_text())
    kept = RewardScale.load(tiny_reward)
    assert record["scale"] == {"shift": kept.shift, "scale": kept.scale, "samples": 8}
    assert kept.scale > 0


def test_dpo_prefers_the_chosen_answers_more_and_more(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    recipe = DpoRecipe(full=True, learning_rate=1e-3, batch=8, epochs=2.0, threads=1)
    from_pairs.dpo(recipe, tiny, toy_pairs, tmp_path)
    losses = scalars(tmp_path, "train/loss")
    assert losses[0] == pytest.approx(math.log(2), abs=1e-4)  # no preference yet
    assert losses[-1] < losses[0] - 0.05


def test_a_pad_token_that_ends_turns_too_is_replaced(tiny: Path, tmp_path: Path) -> None:
    """The reward is read at the last token that is no padding: if alike, one too early."""
    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text((tiny / "config.json").read_text())
    loaded = load_tokenizer(tmp_path)
    assert loaded.pad_token_id != loaded.eos_token_id


def test_an_answer_that_is_chosen_in_many_pairs_is_learnt_once() -> None:
    rows = pair_rows(("gardening",))
    assert len(data.statements([*rows, *rows])) == len(rows) == 2


def test_sft_learns_from_all_low_statements_if_told_so(tiny: Path, tmp_path: Path) -> None:
    """One topic has a pair; the low statements of three have one step each of two rows."""
    pairs = write_pairs(tmp_path / "pairs", pair_rows(("gardening",)), set())
    recipe = SftRecipe(full=True, batch=2, micro_batch=2, all_low=True, threads=1)
    with raises_naming(UserError, "low statements", "all_low"):
        from_pairs.sft(recipe, tiny, pairs, tmp_path / "none")
    low = [
        {name: row[name] for name in ("prompt", "chosen", "topic")}
        for row in pair_rows(("gardening", "coding", "old buses"))
    ]
    file = pairs / "low-profession.parquet"
    pq.write_table(pa.Table.from_pylist(low), file)
    from_pairs.sft(recipe, tiny, pairs, tmp_path / "all")
    record = json.loads((tmp_path / "all/train.json").read_text())
    assert record["steps"] == 3
    digest = hashlib.sha256(hashlib.sha256(file.read_bytes()).digest()).hexdigest()
    assert record["pairs"]["sha256"] == digest


def test_scoring_cuts_where_training_cut(tiny: Path, toy_pairs: Path, tmp_path: Path) -> None:
    recipe = RewardRecipe(
        batch=8, max_steps=1, max_length=100, threads=1, scale_samples=4, scale_tokens=4
    )
    model = RewardModel.load(reward.train(recipe, tiny, toy_pairs, tmp_path))
    assert model.max_length == 100
    assert len(model.ids([{"role": "user", "content": "Why?"}], "x" * 300)) == 100
