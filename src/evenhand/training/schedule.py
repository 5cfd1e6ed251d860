"""The learning rate of each step, for every stage alike."""

import math
from collections.abc import Callable

import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import get_scheduler

from evenhand.training.recipes import Recipe


def rates(recipe: Recipe, steps: int) -> Callable[[int], float]:
    """The share of the full learning rate at each step, counted from 0.

    The schedules are those of transformers without their first and last value, which are 0: a
    training of one step would learn nothing, and a longer one would waste two steps.

    Args:
        recipe: Names the schedule and the share of the steps that warm up.
        steps: All steps of the training.

    Returns:
        A function of the step. It is above 0 for every step below `steps`.
    """
    unused = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_scheduler(
        recipe.schedule,
        unused,
        num_warmup_steps=math.ceil(recipe.warmup * steps),
        num_training_steps=steps + 1,
    )
    share = schedule.lr_lambdas[0]
    return lambda step: float(share(step + 1))


def scheduler(recipe: Recipe, optimizer: torch.optim.Optimizer, steps: int) -> LambdaLR:
    """The same rates as a scheduler of torch."""
    return LambdaLR(optimizer, rates(recipe, steps))
