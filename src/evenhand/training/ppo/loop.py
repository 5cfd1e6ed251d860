"""`evenhand train ppo`: step after step, with metrics, checkpoints and an end at the target KL."""

import math
import random
import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter

from evenhand.core.errors import UserError
from evenhand.training import data
from evenhand.training import record as records
from evenhand.training.events import Note, Tell, TrainingStep, silent
from evenhand.training.ppo import networks as nets
from evenhand.training.ppo.networks import Processes, joined, noise
from evenhand.training.ppo.step import (
    Metrics,
    Ppo,
    Score,
    StepHistory,
    TokenizedPrompt,
    restore,
    save_checkpoint,
    step,
)
from evenhand.training.probes import require_passed
from evenhand.training.recipes import PpoRecipe
from evenhand.training.reward_model import RewardModel
from evenhand.training.stage import open_stage, rates
from evenhand.training.weights import Messages, finished_model, fitting_prompts, load_tokenizer


def steps_of(recipe: PpoRecipe, prompts: int) -> int:
    steps = math.ceil(recipe.epochs * prompts / recipe.batch)
    return steps if recipe.max_steps is None else min(steps, recipe.max_steps)


def order(prompts: int, start: int, count: int, *, seed: int) -> list[int]:
    """Choose prompts from an endless sequence: all in random order, then all in another order.

    Args:
        prompts: How many prompts there are.
        start: The position in the sequence to start at.
        count: How many to choose.
        seed: The seed of the order.

    Returns:
        The indices of the prompts.
    """
    return [
        _dealt(prompts, position // prompts, seed)[position % prompts]
        for position in range(start, start + count)
    ]


@lru_cache(maxsize=2)
def _dealt(prompts: int, epoch: int, seed: int) -> list[int]:
    places = list(range(prompts))
    random.Random(f"{seed} epoch {epoch}").shuffle(places)
    return places


_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class PpoOutcome:
    history: list[Metrics]
    stopped_at_kl: int | None  # the step whose answers were too far from the model at the start


def prepare(model: Path, recipe: PpoRecipe, score: Score, processes: Processes) -> Ppo:
    recipe.accumulation(processes.count)  # refuses a batch that the processes cannot share
    tokenizer = load_tokenizer(model)
    networks = nets.load(model, tokenizer, recipe, processes.device)
    policy, critic = networks.learning()
    groups = [
        {"params": list(policy.values()), "full_rate": recipe.learning_rate},
        {"params": list(critic.values()), "full_rate": recipe.critic_learning_rate},
    ]
    return Ppo(
        recipe=recipe,
        networks=networks,
        optimizer=torch.optim.AdamW(
            groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        ),
        tokenizer=tokenizer,
        ends=_ends(networks.policy(), tokenizer).to(processes.device),
        score=score,
        processes=processes,
    )


def fitting(ppo: Ppo, messages: Sequence[Messages]) -> list[TokenizedPrompt]:
    """The prompts that leave room for an answer."""
    recipe = ppo.recipe
    longest = min(recipe.max_length, ppo.networks.policy().config.max_position_embeddings)
    room = min(recipe.max_prompt, longest - recipe.max_new_tokens)
    return [
        TokenizedPrompt(prompt, ids)
        for prompt, ids in fitting_prompts(ppo.tokenizer, messages, room)
    ]


def resume(ppo: Ppo, out: Path, tell: Tell) -> StepHistory:
    """Load the newest complete checkpoint into the networks, if there is one.

    Args:
        ppo: The networks and the optimizer.
        out: The folder of the training.
        tell: Receives the step that the training resumes from.

    Returns:
        The history up to the checkpoint; empty without one.
    """
    progress = restore(out / _CHECKPOINTS, _weights(ppo), ppo.optimizer, tell)
    if progress.step:
        tell(Note(f"goes on from step {progress.step}"))
    return progress


def learn(
    ppo: Ppo, prompts: Sequence[TokenizedPrompt], out: Path, progress: StepHistory, tell: Tell
) -> PpoOutcome:
    recipe, first = ppo.recipe, ppo.processes.first
    weights, folder = _weights(ppo), out / _CHECKPOINTS
    steps = steps_of(recipe, len(prompts))
    start, clock = progress.step, time.monotonic()
    stopped = None
    # A resumed run takes back what was logged after its checkpoint.
    log = SummaryWriter(str(out / "logs"), purge_step=start + 1) if first else None
    with nullcontext() if log is None else closing(log):
        while progress.step < steps and stopped is None:
            metrics = _finite(_next(ppo, prompts, progress.step, steps), progress.step + 1)
            progress.history.append(metrics)
            each = (time.monotonic() - clock) / (progress.step - start)
            for name, value in metrics.items():
                if log is not None:
                    log.add_scalar(f"train/{name}", value, progress.step)
            shown = {name: metrics.get(name) for name in ("loss", "reward", "kl", "length")}
            left = each * (steps - progress.step)
            tell(
                TrainingStep(
                    stage="ppo", step=progress.step, steps=steps, eta_seconds=left, **shown
                )
            )
            if metrics["kl"] > recipe.target_kl:
                stopped = progress.step
                tell(
                    Note(
                        f"stopped at step {stopped}, which was not learnt from: KL is "
                        f"{metrics['kl']:.3f} nats a token, above the target of "
                        f"{recipe.target_kl:g}; raise target_kl (--set) to go further"
                    )
                )
            elif progress.step % recipe.save_every == 0:
                if first:
                    save_checkpoint(folder, progress, weights, ppo.optimizer, keep=recipe.keep)
                ppo.processes.wait()
    return PpoOutcome(progress.history, stopped)


def _next(ppo: Ppo, prompts: Sequence[TokenizedPrompt], number: int, steps: int) -> Metrics:
    recipe = ppo.recipe
    share_of_rate = rates(recipe, steps)(number)
    for group in ppo.optimizer.param_groups:
        group["lr"] = group["full_rate"] * share_of_rate
    start = number * recipe.batch
    share = ppo.processes.share(recipe.batch)
    indices = order(len(prompts), start, recipe.batch, seed=recipe.seed)[share]
    episodes = range(start, start + recipe.batch)[share]
    chance = noise(recipe.seed, episodes, recipe.max_new_tokens)
    metrics = step(ppo, [prompts[index] for index in indices], chance)
    return metrics | {"learning_rate": ppo.optimizer.param_groups[0]["lr"]}


def _finite(metrics: Metrics, number: int) -> Metrics:
    """Refuse metrics that are not finite, so that such weights are never saved."""
    broken = [name for name, value in metrics.items() if not math.isfinite(value)]
    if broken:
        raise UserError(
            f"Step {number} has no finite {', '.join(broken)}. Lower learning_rate with --set, or "
            "check that the reward model scores every answer."
        )
    return metrics


def _weights(ppo: Ppo) -> nets.Named:
    policy, critic = ppo.networks.learning()
    return policy | critic


def _ends(model: Any, tokenizer: Any) -> torch.Tensor:
    """Chat models may have more ends than the tokenizer names: of a text, and of a turn."""
    token_ids = model.generation_config.eos_token_id
    ends = {
        tokenizer.eos_token_id,
        *(token_ids if isinstance(token_ids, list) else [token_ids]),
    } - {None}
    if not ends:
        raise UserError(
            "The model has no token that ends an answer (eos_token). Use an instruction-tuned "
            "model."
        )
    return torch.tensor(sorted(ends))


def train(
    recipe: PpoRecipe,
    model: Path,
    pairs: Path,
    out: Path,
    *,
    reward: Path,
    force: bool = False,
    config: str = data.ALL,
    tell: Tell = silent,
) -> Path:
    """Train a model with PPO, or resume an interrupted training.

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
    stage = open_stage("ppo", recipe, model, pairs, out, config=config, tell=tell, reward=reward)
    if stage.done:
        return out / "model"
    processes = joined()
    if not processes.first:
        tell = silent
    scorer = RewardModel.load(reward, max_length=recipe.max_length, device=str(processes.device))
    ppo = prepare(model, recipe, scorer.score, processes)
    available = data.prompts(data.rows(pairs, config))
    prompts = fitting(ppo, available)
    stage.record["gate"] = gate
    stage.note_prompts(len(available), len(prompts))
    progress = resume(ppo, out, tell)
    if progress.step:
        stage.record["resumed_from"].append(progress.step)
    if processes.first:
        records.save(out, stage.record)
    outcome = learn(ppo, prompts, out, progress, tell)
    stage.note_steps(len(outcome.history), outcome.history)
    stage.record["stopped_at_kl"] = outcome.stopped_at_kl
    if processes.first:
        with finished_model(out, ppo.tokenizer) as part:
            ppo.networks.finished(out / "adapter").save_pretrained(part)
    processes.wait()
    stage.close(out / "model")
    return out / "model"
