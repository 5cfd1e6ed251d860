"""The stages that make a policy from pairs alone.

Supervised fine-tuning learns the chosen answers and not their prompts; direct preference
optimization learns from both sides, without a reward model.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from evenhand.training import data
from evenhand.training.events import Tell, silent
from evenhand.training.recipes import DpoRecipe, SftRecipe
from evenhand.training.stage import Stage, open_stage, require_step
from evenhand.training.weights import (
    cut,
    load_policy,
    load_tokenizer,
    longest,
    lora,
    prompt_ids,
    render,
)

Example = Callable[[Any, data.Row, int], dict[str, Any]]  # tokenizer, row, most tokens


def sft(
    recipe: SftRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """Train on the chosen answers, or resume a training that was interrupted.

    Args:
        recipe: The settings of the training.
        model: The folder of the model to start from.
        pairs: The folder of preference pairs.
        out: The folder of the training.
        config: A bias type, or "default" for all of them.
        tell: Receives the events of the training.

    Returns:
        The folder of the trained model.
    """
    learnt = data.statements((data.low_ones if recipe.all_low else data.rows)(pairs, config))
    require_step(recipe, model, len(learnt), "statements")
    stage = open_stage("sft", recipe, model, pairs, out, config=config, tell=tell)

    def trainer(**parts: Any) -> Any:
        arguments = SFTConfig(**stage.arguments(), max_length=None, completion_only_loss=True)
        return SFTTrainer(args=arguments, **parts)

    return _trained(stage, trainer, learnt, data.statements(stage.held_out(config)), _statement)


def dpo(
    recipe: DpoRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """Train on pairs by direct preference optimization, or resume an interrupted training.

    Args:
        recipe: The settings of the training.
        model: The folder of the model to start from.
        pairs: The folder of preference pairs.
        out: The folder of the training.
        config: A bias type, or "default" for all of them.
        tell: Receives the events of the training.

    Returns:
        The folder of the trained model.
    """
    learnt = data.rows(pairs, config)
    require_step(recipe, model, len(learnt), "pairs")
    stage = open_stage("dpo", recipe, model, pairs, out, config=config, tell=tell)

    def trainer(**parts: Any) -> Any:
        arguments = DPOConfig(**stage.arguments(), max_length=None, beta=recipe.beta)
        return DPOTrainer(args=arguments, **parts)

    return _trained(stage, trainer, learnt, stage.held_out(config), _pair)


def _trained(
    stage: Stage,
    trainer_of: Callable[..., Any],
    learnt: list[data.Row],
    held_out: list[data.Row],
    example: Example,
) -> Path:
    if stage.done:
        return stage.out / "model"
    recipe, model = stage.recipe, stage.model
    tokenizer, most = load_tokenizer(model), longest(model, recipe)

    def prepared(rows: list[data.Row]) -> Dataset:
        return Dataset.from_list([example(tokenizer, row, most) for row in rows])

    trainer = trainer_of(
        model=load_policy(model, tokenizer, recipe),
        train_dataset=prepared(learnt),
        eval_dataset=prepared(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora(recipe),
        callbacks=stage.callbacks(),
    )
    stage.run(trainer)
    stage.evaluate(trainer)
    return stage.finish(trainer, lambda: load_policy(model, tokenizer, recipe), tokenizer)


def _statement(tokenizer: Any, row: data.Row, max_length: int) -> dict[str, list[int]]:
    ids = render(tokenizer, row["prompt"], data.response(row, "chosen"), max_length)
    # A template may write the start of an answer otherwise when it asks for one.
    before = 0
    for token, prompt_token in zip(ids, prompt_ids(tokenizer, row["prompt"]), strict=False):
        if token != prompt_token:
            break
        before += 1
    return {"input_ids": ids, "completion_mask": [0] * before + [1] * (len(ids) - before)}


def _pair(tokenizer: Any, row: data.Row, max_length: int) -> dict[str, Any]:
    def spoken(side: str) -> list[dict[str, str]]:
        words = cut(tokenizer, row["prompt"], data.response(row, side), max_length)
        return [{"role": "assistant", "content": words}]

    return {"prompt": row["prompt"], "chosen": spoken("chosen"), "rejected": spoken("rejected")}
