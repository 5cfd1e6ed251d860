"""One step of PPO: sample answers, score them, and move the policy and the critic a little.

prompts ─► policy ─► answers ─► reward model ─► scores ─┐
             │                                          ├─► advantages ─► clipped updates
             └─► policy, reference, critic: log-probabilities, KL, values ─┘

Tensors are [response, token]. A mask is true on a response's tokens, the one that ends it included,
and false after them. Losses are sums over tokens: the caller divides by the tokens of the whole
batch, so that padding, the split into passes and the number of processes leave the loss as it is.

A checkpoint has all that a step reads: the weights that learn, Adam's moments and the step's
number. The order of the prompts, the sampling and the learning rate follow from the number and the
recipe, so no generator of random numbers has a state to keep.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, arange, maximum, minimum, nn, stack, zeros, zeros_like

from evenhand.training.events import Tell
from evenhand.training.folders import drop_old, newest_whole, seal, to_disk
from evenhand.training.ppo import networks as nets
from evenhand.training.ppo.networks import Episodes, Processes, sample, texts
from evenhand.training.recipes import PpoRecipe
from evenhand.training.weights import Messages

_STATE = "trainer_state.json"
_WEIGHTS = "weights.safetensors"
_MOMENTS = "moments.safetensors"
_NAME = "checkpoint-"

Metrics = dict[str, float]


@dataclass(frozen=True, slots=True)
class StepHistory:
    """What each step measured, and so how many were taken."""

    history: list[Metrics]

    @property
    def step(self) -> int:
        return len(self.history)


def save_checkpoint(
    out: Path,
    progress: StepHistory,
    weights: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    *,
    keep: int,
) -> None:
    part = out / f".{_NAME}{progress.step}.part"
    shutil.rmtree(part, ignore_errors=True)  # a killed run left it
    part.mkdir(parents=True)
    save_file({name: _still(p) for name, p in weights.items()}, part / _WEIGHTS)
    save_file(_moments(weights, optimizer), part / _MOMENTS)
    state = {"global_step": progress.step, "history": progress.history}
    (part / _STATE).write_text(json.dumps(state))
    seal(part)
    target = out / f"{_NAME}{progress.step}"
    shutil.rmtree(target, ignore_errors=True)  # a damaged one that was passed over
    part.rename(target)
    to_disk(out)
    drop_old(out, keep)


def restore(
    out: Path,
    weights: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    tell: Tell,
) -> StepHistory:
    """Load the newest complete checkpoint, if there is one.

    Args:
        out: The folder of checkpoints.
        weights: The parameters to overwrite.
        optimizer: The optimizer, whose moments are overwritten.
        tell: Receives a note about each damaged checkpoint.

    Returns:
        The history up to the checkpoint; empty without one.
    """
    folder = newest_whole(out, tell)
    if folder is None:
        return StepHistory([])
    _load(folder, weights, optimizer)
    return StepHistory(json.loads((folder / _STATE).read_text())["history"])


def _load(
    folder: Path, weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    saved = load_file(folder / _WEIGHTS)
    moments: dict[str, dict[str, Tensor]] = {}
    for path, tensor in load_file(folder / _MOMENTS).items():
        name, _, kind = path.rpartition("/")
        moments.setdefault(name, {})[kind] = tensor
    with torch.no_grad():
        for name, parameter in weights.items():
            parameter.copy_(saved[name])
            device = parameter.device
            # Adam counts its steps on the CPU, wherever the weights are.
            optimizer.state[parameter] = {
                kind: tensor if kind == "step" else tensor.to(device)
                for kind, tensor in moments.get(name, {}).items()
            }


def _moments(
    weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    return {
        f"{name}/{kind}": _still(tensor)
        for name, parameter in weights.items()
        for kind, tensor in optimizer.state[parameter].items()
    }


def _still(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


_TINY = 1e-8  # keeps a batch of equal advantages from a division by zero


def token_rewards(scores: Tensor, log_ratio: Tensor, mask: Tensor, *, beta: float) -> Tensor:
    """Compute r_t = −β (log π_RL − log π_SFT)_t, and add R(x, y) at the last token.

    Summed over a response and averaged over samples of the policy, this is the paper's
    J = E[R(x, y)] − β KL(π_RL ‖ π_SFT).

    Args:
        scores: R(x, y), one per response.
        log_ratio: log π_RL − log π_SFT of each token.
        mask: True for the tokens of the response.
        beta: The weight of the KL term.

    Returns:
        The reward of each token.
    """
    rewards = -beta * log_ratio * mask
    last = mask.sum(dim=1) - 1
    rewards[arange(len(scores), device=scores.device), last] += scores
    return rewards


def estimate(
    rewards: Tensor, values: Tensor, mask: Tensor, *, discount: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Compute generalized advantage estimates and the returns that the critic learns.

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γλ A_{t+1}; nothing is worth anything after the
    last token, whether the response ended there or was cut.

    Args:
        rewards: The reward of each token.
        values: The critic's value of each token.
        mask: True for the tokens of the response.
        discount: γ.
        gae_lambda: λ.

    Returns:
        The advantages and the returns.
    """
    held = mask.to(values.dtype)
    values, rewards = values * held, rewards * held
    advantages = zeros_like(values)
    later = zeros(len(values), dtype=values.dtype, device=values.device)
    next_value = later
    for t in reversed(range(values.shape[1])):
        surprise = rewards[:, t] + discount * next_value - values[:, t]
        later = (surprise + discount * gae_lambda * later) * held[:, t]
        advantages[:, t] = later
        next_value = values[:, t]
    return advantages, advantages + values


def whiten(advantages: Tensor, mask: Tensor, summed: Callable[[Tensor], Tensor]) -> Tensor:
    """Scale advantages to mean 0 and standard deviation 1 over the tokens of every process.

    Args:
        advantages: The advantages of this process.
        mask: True for the tokens of the response.
        summed: Adds up a tensor over the processes.

    Returns:
        The scaled advantages; 0 outside the mask.
    """
    held = mask.to(advantages.dtype)
    count, total = summed(stack([held.sum(), (advantages * held).sum()]))
    centred = (advantages - total / count) * held
    spread = (summed(centred.square().sum()) / count).sqrt()
    white: Tensor = centred / (spread + _TINY)
    return white


def policy_loss(
    new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, *, clip: float
) -> tuple[Tensor, Tensor]:
    """Compute −Σ min(ρA, clip(ρ, 1 ± ε)A) with ρ = exp(new − old).

    Args:
        new: The log-probabilities under the policy now.
        old: The log-probabilities when the response was sampled.
        advantages: A, per token.
        mask: True for the tokens of the response.
        clip: ε.

    Returns:
        The loss, summed over tokens, and the number of tokens that were clipped.
    """
    ratio = (new - old).exp()
    free = ratio * advantages
    held = ratio.clamp(1 - clip, 1 + clip) * advantages
    loss = -(minimum(free, held) * mask).sum()
    return loss, ((held < free) & mask).sum()


def value_loss(
    new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, *, clip: float | None
) -> Tensor:
    """Compute ½ Σ (V − return)², with V or with V kept near its old value, whichever is worse.

    Args:
        new: The critic's values now.
        old: The critic's values when the response was sampled.
        returns: The targets.
        mask: True for the tokens of the response.
        clip: How far V may move from its old value; None for no limit.

    Returns:
        The loss, summed over tokens.
    """
    error = (new - returns).square()
    if clip is not None:
        near = old + (new - old).clamp(-clip, clip)
        error = maximum(error, (near - returns).square())
    return 0.5 * (error * mask).sum()


Score = Callable[[Sequence[Messages], Sequence[str]], list[float]]


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    messages: Messages
    ids: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ppo:
    """What stays the same from step to step."""

    recipe: PpoRecipe
    networks: nets.PpoNetworks
    optimizer: torch.optim.Optimizer
    tokenizer: Any
    ends: Tensor  # tokens that end an answer
    score: Score
    processes: Processes


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """What the networks said of each token before the step changed them."""

    log_probs: Tensor
    reference: Tensor
    kl: Tensor  # of the whole distribution, so never below 0; the reward has the sampled token's
    entropy: Tensor
    values: Tensor


def step(ppo: Ppo, prompts: Sequence[TokenizedPrompt], noise: Tensor) -> Metrics:
    """Take one PPO step. A batch whose KL exceeds the target is measured and not learned from.

    Args:
        ppo: The networks, the optimizer and the recipe.
        prompts: This process's share of the batch.
        noise: The random numbers of this process's share; a row per prompt.

    Returns:
        The metrics of the step, without a loss if nothing was learned.
    """
    recipe = ppo.recipe
    episodes = answer(ppo, prompts, noise)
    scores = rewards_of(ppo, prompts, episodes)
    outputs = look(ppo, episodes)
    metrics = _measured(ppo, episodes, scores, outputs)
    if metrics["kl"] > recipe.target_kl:
        return metrics
    rewards = token_rewards(
        scores, outputs.log_probs - outputs.reference, episodes.mask, beta=recipe.beta
    )
    advantages, returns = estimate(
        rewards, outputs.values, episodes.mask, discount=recipe.gamma, gae_lambda=recipe.gae_lambda
    )
    if recipe.whiten:
        advantages = whiten(advantages, episodes.mask, ppo.processes.summed)
    learnt = [
        update(ppo, episodes, outputs, advantages, returns) for _ in range(recipe.inner_epochs)
    ]
    metrics["first_pass_gap"] = learnt[0].pop("gap")
    metrics |= {name: sum(losses[name] for losses in learnt) / len(learnt) for name in learnt[0]}
    return metrics


def answer(ppo: Ppo, prompts: Sequence[TokenizedPrompt], noise: Tensor) -> Episodes:
    return sample(
        ppo.networks.policy(),
        [prompt.ids for prompt in prompts],
        noise.to(ppo.ends.device),
        ends=ppo.ends,
        pad=int(ppo.ends[0]),  # any token: masks hide it
        temperature=ppo.recipe.temperature,
    )


def rewards_of(ppo: Ppo, prompts: Sequence[TokenizedPrompt], episodes: Episodes) -> Tensor:
    """Score the answers. The reward model reads decoded text through its own template, never ids.

    Args:
        ppo: The reward model and the recipe.
        prompts: The prompts.
        episodes: Their responses.

    Returns:
        A reward per response, less the recipe's penalty if it did not end by itself.
    """
    rewards = ppo.score([prompt.messages for prompt in prompts], texts(ppo.tokenizer, episodes))
    scores = torch.tensor(rewards, dtype=torch.float32, device=ppo.ends.device)
    return scores - ppo.recipe.missing_eos_penalty * ~_ended(ppo, episodes)


def look(ppo: Ppo, episodes: Episodes) -> TokenStatistics:
    """In the same parts as `update`: another shape of batch rounds otherwise, and the ratio of the
    first pass would not be exactly 1."""
    parts = []
    temperature = ppo.recipe.temperature
    for rows in _parts(ppo, episodes):
        part = episodes.rows(rows)
        with torch.no_grad():
            policy = nets.log_probs(ppo.networks.policy(), part, temperature)
            with ppo.networks.reference() as model:
                reference = nets.log_probs(model, part, temperature)
            chances = policy.exp()
            parts.append(
                (
                    nets.of_tokens(policy, part),
                    nets.of_tokens(reference, part),
                    (chances * (policy - reference)).sum(dim=-1),
                    -(chances * policy).sum(dim=-1),
                    nets.values(ppo.networks, part),
                )
            )
    return TokenStatistics(*(torch.cat(column) for column in zip(*parts, strict=True)))


def update(
    ppo: Ppo, episodes: Episodes, outputs: TokenStatistics, advantages: Tensor, returns: Tensor
) -> Metrics:
    """Make one pass over the batch and one step of the optimizer.

    Args:
        ppo: The networks, the optimizer and the recipe.
        episodes: The prompts and responses.
        outputs: What the networks computed of each token when it was sampled.
        advantages: The advantage of each token.
        returns: The targets of the critic.

    Returns:
        The losses per token, the share of clipped tokens, and the largest change of a
        log-probability.
    """
    recipe, networks = ppo.recipe, ppo.networks
    tokens = ppo.processes.summed(episodes.mask.sum().float())
    totals = torch.zeros(3, device=tokens.device)
    gap = torch.zeros((), device=tokens.device)
    for rows in _parts(ppo, episodes):
        part, mask, old = episodes.rows(rows), episodes.mask[rows], outputs.log_probs[rows]
        all_log_probs = nets.log_probs(networks.policy(), part, recipe.temperature)
        new = nets.of_tokens(all_log_probs, part)
        loss, clipped = policy_loss(new, old, advantages[rows], mask, clip=recipe.clip)
        torch.autograd.backward(loss / tokens)
        expected = nets.values(networks, part)
        error = value_loss(
            expected, outputs.values[rows], returns[rows], mask, clip=recipe.value_clip
        )
        torch.autograd.backward(error / tokens)
        totals += torch.stack([loss.detach(), error.detach(), clipped])
        gap = torch.maximum(gap, ((new.detach() - old).abs() * mask).max())
    _descend(ppo)
    loss, error, clipped = (ppo.processes.summed(totals) / tokens).tolist()
    return {"loss": loss, "value_loss": error, "clip_fraction": clipped, "gap": float(gap)}


def _descend(ppo: Ppo) -> None:
    """Gradients of all processes are added up, and clipped for the policy and the critic apart."""
    for group in ppo.optimizer.param_groups:
        ppo.processes.add_gradients(group["params"])
        torch.nn.utils.clip_grad_norm_(group["params"], ppo.recipe.max_grad_norm)
    ppo.optimizer.step()
    ppo.optimizer.zero_grad(set_to_none=True)


def _measured(ppo: Ppo, episodes: Episodes, scores: Tensor, outputs: TokenStatistics) -> Metrics:
    """Means over the answers and tokens of all processes."""
    mask = episodes.mask
    sums = torch.stack(
        [
            torch.tensor(float(len(episodes)), device=mask.device),
            mask.sum().float(),
            scores.sum(),
            (outputs.kl * mask).sum(),
            (outputs.entropy * mask).sum(),
            _ended(ppo, episodes).sum().float(),
        ]
    )
    answers, tokens, reward, kl, entropy, ended = ppo.processes.summed(sums).tolist()
    return {
        "reward": reward / answers,
        "kl": kl / tokens,
        "kl_answer": kl / answers,
        "length": tokens / answers,
        "entropy": entropy / tokens,
        "ended": ended / answers,
    }


def _ended(ppo: Ppo, episodes: Episodes) -> Tensor:
    return (torch.isin(episodes.responses, ppo.ends) & episodes.mask).any(dim=1)


def _parts(ppo: Ppo, episodes: Episodes) -> Iterator[slice]:
    size = ppo.recipe.micro_batch
    for start in range(0, len(episodes), size):
        yield slice(start, start + size)
