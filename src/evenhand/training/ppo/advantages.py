"""From one score per response to one advantage per token: the KL penalty, GAE, whitening.

Tensors are [response, token]. A mask is true on a response's tokens, the one that ends it
included, and false after them.
"""

from collections.abc import Callable

from torch import Tensor, arange, stack, zeros, zeros_like

_TINY = 1e-8  # keeps a batch of equal advantages from a division by zero


def token_rewards(scores: Tensor, log_ratio: Tensor, mask: Tensor, *, beta: float) -> Tensor:
    """r_t = −β (log π_RL − log π_SFT)_t, and R(x, y) on top of it at the last token.

    Summed over a response and averaged over samples of the policy, this is the paper's
    J = E[R(x, y)] − β KL(π_RL ‖ π_SFT).
    """
    rewards = -beta * log_ratio * mask
    last = mask.sum(dim=1) - 1
    rewards[arange(len(scores), device=scores.device), last] += scores
    return rewards


def estimate(
    rewards: Tensor, values: Tensor, mask: Tensor, *, discount: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates, and the returns that the critic learns.

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γλ A_{t+1}; nothing is worth anything after the
    last token, whether the response ended there or was cut.
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
    """Mean 0 and deviation 1 over the tokens of every process: `summed` adds up over them."""
    held = mask.to(advantages.dtype)
    count, total = summed(stack([held.sum(), (advantages * held).sum()]))
    centred = (advantages - total / count) * held
    spread = (summed(centred.square().sum()) / count).sqrt()
    white: Tensor = centred / (spread + _TINY)
    return white
