"""Reinforcement learning with a leave-one-out baseline: the paper's objective, no critic.

Equation 4 of paper 002: the reward minus beta times KL to the model that it started from. KL is in
the reward, measured at each step, and ends the training at `target_kl`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import RLOOConfig, RLOOTrainer

from evenhand.core.errors import UserError
from evenhand.training import data
from evenhand.training.events import Tell, silent
from evenhand.training.probes import require_passed
from evenhand.training.recipes import RlooRecipe
from evenhand.training.reward_model import RewardModel
from evenhand.training.stage import Stage, StopAtKl, open_stage
from evenhand.training.weights import (
    device,
    fitting_prompts,
    load_policy,
    load_tokenizer,
    longest,
    lora,
)


def train(
    recipe: RlooRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    reward: Path,
    force: bool = False,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """Train a model with RLOO, or resume an interrupted training.

    Args:
        recipe: The settings of the training.
        model: The folder of the SFT model.
        pairs: The folder of preference pairs, whose prompts are used.
        out: The folder of the training.
        reward: The folder of a reward model that passed its probes.
        force: Whether to train against a reward model that did not pass.
        config: A bias type, or "default" for all of them.
        tell: Receives the events of the training.

    Returns:
        The folder of the trained model.

    Raises:
        UserError: If the reward model did not pass its probes and `force` is not set.
    """
    gate = require_passed(reward, force)
    _require_a_batch(recipe, len(data.prompts(data.rows(pairs, config))))
    stage = open_stage("rloo", recipe, model, pairs, out, config=config, tell=tell, reward=reward)
    if stage.done:
        return out / "model"
    stage.record["gate"] = gate
    tokenizer = load_tokenizer(model)
    tokenizer.padding_side = "left"
    far = StopAtKl(recipe.target_kl, tell)
    trainer = RLOOTrainer(
        model=load_policy(model, tokenizer, recipe),
        reward_funcs=rewarded(
            RewardModel.load(reward, max_length=recipe.max_length, device=device())
        ),
        args=RLOOConfig(
            **stage.arguments(),
            beta=recipe.beta,
            num_generations=recipe.generations,
            max_completion_length=recipe.max_new_tokens,
            temperature=recipe.temperature,
            top_p=1.0,
            top_k=0,
            epsilon=recipe.clip,
            use_vllm=recipe.vllm,
        ),
        train_dataset=Dataset.from_list(
            [{"prompt": p} for p in _prompts(stage, tokenizer, recipe)]
        ),
        processing_class=tokenizer,
        peft_config=lora(recipe),
        callbacks=[*stage.callbacks(), far],
    )
    stage.run(trainer)
    stage.record["stopped_at_kl"] = far.stopped_at
    return stage.finish(trainer, lambda: load_policy(model, tokenizer, recipe), tokenizer)


def rewarded(reward_model: RewardModel) -> Callable[..., list[float]]:
    """The reward of the decoded answer through the reward model's own template. TRL would score
    raw ids of another model's template otherwise."""

    def reward(prompts: list[Any], completions: list[Any], **_: Any) -> list[float]:
        responses = [completion[-1]["content"] for completion in completions]
        return reward_model.score(prompts, responses)

    return reward


def _require_a_batch(recipe: RlooRecipe, prompts: int) -> None:
    """TRL drops a batch that is not full. If that were the only one, nothing would be trained."""
    answers = prompts * recipe.generations
    if 0 < answers < recipe.batch:
        raise UserError(
            f"{prompts} prompts with {recipe.generations} answers each do not fill a batch of "
            f"{recipe.batch}: --set batch={answers} --set micro_batch={answers}"
        )


def _prompts(stage: Stage, tokenizer: Any, recipe: RlooRecipe) -> list[Any]:
    available = data.prompts(data.rows(stage.pairs, stage.record["pairs"]["config"]))
    room = min(recipe.max_prompt, longest(stage.model, recipe) - recipe.max_new_tokens)
    selected = [prompt for prompt, _ in fitting_prompts(tokenizer, available, room)]
    stage.note_prompts(len(available), len(selected))
    _require_a_batch(recipe, len(selected))
    return selected
