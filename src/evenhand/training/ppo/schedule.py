"""Which prompts a step shows and how fast it learns: both follow from the step's number."""

import math
import random
from functools import lru_cache

import torch
from transformers import get_scheduler

from evenhand.training.recipes import PpoRecipe


def steps_of(recipe: PpoRecipe, prompts: int) -> int:
    steps = math.ceil(recipe.epochs * prompts / recipe.batch)
    return steps if recipe.max_steps is None else min(steps, recipe.max_steps)


def order(prompts: int, start: int, count: int, *, seed: int) -> list[int]:
    """The prompts number start … start + count of an endless deal: all of them in a new order,
    then all of them again."""
    return [
        _dealt(prompts, place // prompts, seed)[place % prompts]
        for place in range(start, start + count)
    ]


def rate(recipe: PpoRecipe, *, steps: int, step: int) -> float:
    """The share of the full learning rate, by the schedules of transformers. Their first and last
    value is 0; a step of PPO is too dear to learn nothing, so these are left out."""
    unused = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_scheduler(
        recipe.schedule,
        unused,
        num_warmup_steps=math.ceil(recipe.warmup * steps),
        num_training_steps=steps + 1,
    )
    return float(schedule.lr_lambdas[0](step + 1))


@lru_cache(maxsize=2)
def _dealt(prompts: int, epoch: int, seed: int) -> list[int]:
    places = list(range(prompts))
    random.Random(f"{seed} epoch {epoch}").shuffle(places)
    return places
