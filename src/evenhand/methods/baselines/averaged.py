"""Counterfactual averaging: the task is asked under every label and without one, and all get the
same answer: the decision that most replies name, or the median of their numbers.

Whom a task speaks of cannot change the answer then, but for what chance changes from call to call.
Source: ours.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, ClassVar

import orjson

from evenhand.agents import Agent, Ask, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.errors import UnreadableReply, Unsuited
from evenhand.methods.baselines.single_prompt import text_agent
from evenhand.metrics.readings import each_decision, first_number
from evenhand.prompts import load

TAG = "versions"  # where an item carries its own words under every label, and how to read an answer
_TEXT = load("baselines/default_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaged:
    """One call for each label and one without, side by side; the reply with the decision of most,
    or with the median number, is the answer to all. Only items that carry such words can be
    answered so: those of `swap` with a decision or a number, and of `discrim_eval`."""

    name: ClassVar[str] = "averaged"
    calls_an_item: ClassVar[str] = "3 (labels + 1)"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (text_agent(_TEXT),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(TAG, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words under other labels, or nothing to be averaged: "
                "averaged works on `swap` with --decision or --number"
            )
        known = orjson.loads(words)
        agent = text_agent(_TEXT)
        replies = await side_by_side(*(ask(agent, prompt=one) for one in known["texts"]))
        said = one_for_all([reply.text for reply in replies], known["decision"])
        return Answer(drafts=(Draft(text=said),), stopped="single_pass")


def one_for_all(texts: Sequence[str], decision: str | None) -> str:
    """Give the first text with the decision that most name, of equals the one that is named first,
    or with the median number, of two middle ones the lower."""
    numbers = [first_number(text) for text in texts]
    found: list[Any] = each_decision(texts, decision) if decision else numbers
    read = [one for one in found if one is not None]
    if 2 * len(read) <= len(texts):
        raise UnreadableReply(
            "no_answer", f"only {len(read)} of {len(texts)} replies can be read; most must"
        )
    middle = Counter(read).most_common(1)[0][0] if decision else median_low(read)
    return texts[found.index(middle)]
