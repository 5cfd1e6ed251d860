"""The reward model: the chosen answer above the rejected one, by a margin from the score gap.

TRL's trainer leaves out a pair that is longer than its limit. So ours come to it as token ids, cut
by the one way that scoring cuts them too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from trl import RewardConfig, RewardTrainer

from evenhand.training import data
from evenhand.training.events import Note, Tell, silent
from evenhand.training.recipes import RewardRecipe
from evenhand.training.reward_model import RewardModel, RewardScale
from evenhand.training.stage import Stage, open_stage, require_step
from evenhand.training.weights import (
    Messages,
    device,
    load_policy,
    load_scalar,
    load_tokenizer,
    longest,
    lora,
    padded,
    prompt_ids,
    render,
    save,
)

_AT_ONCE = 16  # prompts answered together


@torch.inference_mode()
def answers(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Messages],
    *,
    max_new_tokens: int,
    seed: int,
) -> list[str]:
    """Sample one answer to each prompt, without truncating the distribution.

    Args:
        model: The model to sample from.
        tokenizer: Its tokenizer.
        prompts: The prompts.
        max_new_tokens: The longest answer.
        seed: The seed of the sample.

    Returns:
        The answers.
    """
    model = model.eval().to(device())
    torch.manual_seed(seed)
    responses: list[str] = []
    for start in range(0, len(prompts), _AT_ONCE):
        rows = [prompt_ids(tokenizer, prompt) for prompt in prompts[start : start + _AT_ONCE]]
        ids, mask = padded(rows, tokenizer.pad_token_id, model.device, left=True)
        generated = model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=max_new_tokens,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        responses += tokenizer.batch_decode(generated[:, ids.shape[1] :], skip_special_tokens=True)
    return responses


def train(
    recipe: RewardRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """Train a reward model, or resume an interrupted training.

    Args:
        recipe: The settings of the training.
        model: The folder of the SFT model. The reward model starts from it, and its answers set
            the scale.
        pairs: The folder of preference pairs.
        out: The folder of the training.
        config: A bias type, or "default" for all of them.
        tell: Receives the events of the training.

    Returns:
        The folder of the reward model.
    """
    learnt = data.rows(pairs, config)
    require_step(recipe, model, len(learnt), "pairs")
    stage = open_stage("reward", recipe, model, pairs, out, config=config, tell=tell)
    if stage.done:
        return out / "model"
    tokenizer = load_tokenizer(model)
    tokenizer.model_max_length = longest(model, recipe)  # kept with the model: scoring cuts alike

    def prepared(rows: list[data.Row]) -> Dataset:
        return Dataset.from_list([_pair(tokenizer, row, recipe.margin) for row in rows])

    held_out = stage.held_out(config)
    trainer = RewardTrainer(
        model=load_scalar(model, tokenizer, recipe),
        args=RewardConfig(**stage.arguments(), max_length=None),
        train_dataset=prepared(learnt),
        eval_dataset=prepared(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora(recipe, "SEQ_CLS"),
        callbacks=stage.callbacks(),
    )
    stage.run(trainer)
    stage.evaluate(trainer)
    folder = save(trainer, lambda: load_scalar(model, tokenizer, recipe), tokenizer, out)
    if PartialState().is_main_process:
        _set_scale(stage, recipe, tokenizer, folder, config)
    stage.close(folder, lambda: load_scalar(model, tokenizer, recipe).state_dict())
    return folder


def _pair(tokenizer: Any, row: data.Row, margin: bool) -> dict[str, Any]:
    most = tokenizer.model_max_length
    ids = {
        f"{side}_ids": render(tokenizer, row["prompt"], data.response(row, side), most)
        for side in ("chosen", "rejected")
    }
    return ids | ({"margin": float(row["margin"])} if margin else {})


def _set_scale(
    stage: Stage, recipe: RewardRecipe, tokenizer: Any, folder: Path, config: str
) -> None:
    stage.tell(Note(f"sampling {recipe.scale_samples} answers to set the scale of the reward"))
    available = data.prompts(data.rows(stage.pairs, config))
    sampled = [available[n % len(available)] for n in range(recipe.scale_samples)]
    responses = answers(
        load_policy(stage.model, tokenizer, recipe),
        tokenizer,
        sampled,
        max_new_tokens=recipe.scale_tokens,
        seed=recipe.seed,
    )
    rewards = RewardModel.load(folder).raw(sampled, responses)
    scale = RewardScale.of(rewards)
    scale.save(folder)
    stage.record["scale"] = {"shift": scale.shift, "scale": scale.scale, "samples": len(responses)}
