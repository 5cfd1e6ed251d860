"""Direct preference optimisation: from the pairs to the policy without a reward model."""

from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer

from evenhand.training import data
from evenhand.training.events import Tell, silent
from evenhand.training.recipes import DpoRecipe
from evenhand.training.render import cut
from evenhand.training.stage import open_stage, require_step
from evenhand.training.weights import load_policy, load_tokenizer, longest, lora


def train(
    recipe: DpoRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    learnt = data.rows(pairs, config)
    require_step(recipe, model, len(learnt), "pairs")
    stage = open_stage("dpo", recipe, model, pairs, out, config=config, tell=tell)
    if stage.done:
        return out / "model"
    tokenizer, most = load_tokenizer(model), longest(model, recipe)

    def prepared(rows: list[data.Row]) -> Dataset:
        return Dataset.from_list([_pair(tokenizer, row, most) for row in rows])

    held_out = stage.held_out(config)
    trainer = DPOTrainer(
        model=load_policy(model, tokenizer, recipe),
        args=DPOConfig(**stage.arguments(), max_length=None, beta=recipe.beta),
        train_dataset=prepared(learnt),
        eval_dataset=prepared(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=lora(recipe),
        callbacks=stage.callbacks(),
    )
    stage.run(trainer)
    stage.evaluate(trainer)
    return stage.finish(trainer, lambda: load_policy(model, tokenizer, recipe), tokenizer)


def _pair(tokenizer: Any, row: data.Row, max_length: int) -> dict[str, Any]:
    return {
        "prompt": row["prompt"],
        **{
            side: [
                {
                    "role": "assistant",
                    "content": cut(tokenizer, row["prompt"], data.response(row, side), max_length),
                }
            ]
            for side in ("chosen", "rejected")
        },
    }
