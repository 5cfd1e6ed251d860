"""How many steps there are and which prompts a step shows: both follow from its number."""

import math
import random
from functools import lru_cache

from evenhand.training.recipes import PpoRecipe


def steps_of(recipe: PpoRecipe, prompts: int) -> int:
    steps = math.ceil(recipe.epochs * prompts / recipe.batch)
    return steps if recipe.max_steps is None else min(steps, recipe.max_steps)


def order(prompts: int, start: int, count: int, *, seed: int) -> list[int]:
    """The prompts number start … start + count of an endless deal: all of them in a new order,
    then all of them again."""
    return [
        _dealt(prompts, position // prompts, seed)[position % prompts]
        for position in range(start, start + count)
    ]


@lru_cache(maxsize=2)
def _dealt(prompts: int, epoch: int, seed: int) -> list[int]:
    places = list(range(prompts))
    random.Random(f"{seed} epoch {epoch}").shuffle(places)
    return places
