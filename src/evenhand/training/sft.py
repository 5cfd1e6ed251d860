"""Supervised fine-tuning on the chosen answers, and on them alone: the prompt is not learnt."""

from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from evenhand.training import data
from evenhand.training.events import Tell, silent
from evenhand.training.recipes import SftRecipe
from evenhand.training.render import prompt_ids, render
from evenhand.training.stage import open_stage, require_step
from evenhand.training.weights import load_policy, load_tokenizer, longest, lora


def train(
    recipe: SftRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """The folder of the trained model. Goes on where a killed training stopped."""
    learnt = data.statements((data.low_ones if recipe.all_low else data.rows)(pairs, config))
    require_step(recipe, model, len(learnt), "statements")
    stage = open_stage("sft", recipe, model, pairs, out, config=config, tell=tell)
    if stage.done:
        return out / "model"
    tokenizer, most = load_tokenizer(model), longest(model, recipe)

    def prepared(rows: list[data.Row]) -> Dataset:
        return Dataset.from_list([_example(tokenizer, row, most) for row in rows])

    held_out = data.statements(stage.held_out(config))
    trainer = SFTTrainer(
        model=load_policy(model, tokenizer, recipe),
        args=SFTConfig(**stage.arguments(), max_length=None, completion_only_loss=True),
        train_dataset=prepared(learnt),
        eval_dataset=prepared(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora(recipe),
        callbacks=stage.callbacks(),
    )
    stage.run(trainer)
    stage.evaluate(trainer)
    return stage.finish(trainer, lambda: load_policy(model, tokenizer, recipe), tokenizer)


def _example(tokenizer: Any, row: data.Row, max_length: int) -> dict[str, list[int]]:
    ids = render(tokenizer, row["prompt"], data.response(row, "chosen"), max_length)
    # A template may write the start of an answer otherwise when it asks for one.
    before = 0
    for token, prompt_token in zip(ids, prompt_ids(tokenizer, row["prompt"]), strict=False):
        if token != prompt_token:
            break
        before += 1
    return {"input_ids": ids, "completion_mask": [0] * before + [1] * (len(ids) - before)}
