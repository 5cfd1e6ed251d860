"""PPO's two losses, each a sum over tokens: the caller divides by the tokens of the whole batch,
so that padding, the split into passes and the number of processes leave the loss as it is."""

from torch import Tensor, maximum, minimum


def policy_loss(
    new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, *, clip: float
) -> tuple[Tensor, Tensor]:
    """−Σ min(ρA, clip(ρ, 1 ± ε)A) with ρ = exp(new − old), and how many tokens were clipped."""
    ratio = (new - old).exp()
    free = ratio * advantages
    held = ratio.clamp(1 - clip, 1 + clip) * advantages
    loss = -(minimum(free, held) * mask).sum()
    return loss, ((held < free) & mask).sum()


def value_loss(
    new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, *, clip: float | None
) -> Tensor:
    """½ Σ (V − return)², of the worse of V and V kept within `clip` of what it was; None: of V."""
    error = (new - returns).square()
    if clip is not None:
        near = old + (new - old).clamp(-clip, clip)
        error = maximum(error, (near - returns).square())
    return 0.5 * (error * mask).sum()
