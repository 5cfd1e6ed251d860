"""Rotated options: asked once in each rotation of the options, the one whose letters are likeliest
wins (after Zheng et al. 2024).

With n options, option i stands at place i − r of rotation r, and each stands once at each place:

    s(i) = mean over r of log p(letter of i | rotation r)

Where a model's liking for a letter is a factor of its own, it adds the same to every s(i) and so
decides nothing; nor does what a list leaves to other words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from evenhand.agents import Agent, Ask, NextToken, one_token, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import Unsuited
from evenhand.methods.baselines.single_prompt import no_letter, question
from evenhand.prompts import LETTERS, load

CHOICE = one_token("generator", load("baselines/rotated_choice"), NextToken)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """One call for each option, side by side, for endpoints that give log-probabilities. The first
    draft is what the order as given would have said."""

    name: ClassVar[str] = "rotated"
    calls_an_item: ClassVar[str] = "3 (options)"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (CHOICE,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices:
            raise Unsuited(f"{self.name} answers questions with choices; {item.id!r} has none")
        turns = range(len(item.choices))
        turned = (replace(item, choices=item.choices[r:] + item.choices[:r]) for r in turns)
        replies = await side_by_side(*(ask(CHOICE, **question(rotation)) for rotation in turned))
        logs = [_logs(reply, len(item.choices)) for reply in replies]
        drafts = tuple(_draft(item, log_probs) for log_probs in (logs[0], mean_of_rotations(logs)))
        return Answer(drafts=drafts, stopped="single_pass")


def _logs(reply: NextToken, options: int) -> list[float]:
    """The log-probability of each letter, in their order."""
    letters = LETTERS[:options]
    log_probs = reply.logs_of(letters)
    if not log_probs:
        raise no_letter(reply, letters)
    return [log_probs[letter] for letter in letters]


def mean_of_rotations(logs: Sequence[Sequence[float]]) -> list[float]:
    """The mean log-probability of each option, from a row for each rotation, a column for each
    letter."""
    options = range(len(logs))
    return [math.fsum(logs[r][option - r] for r in options) / len(logs) for option in options]


def _draft(item: Item, logs: Sequence[float]) -> Draft:
    """The likeliest option, the first of equals, with its share among all."""
    choice = max(range(len(logs)), key=lambda option: logs[option])
    share = 1 / math.fsum(math.exp(log - logs[choice]) for log in logs)
    return Draft(text=item.choices[choice], choice=choice, scores={"share": share})
