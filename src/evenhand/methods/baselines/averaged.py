"""Counterfactual averaging: the task is asked under every label and without one, and all labels get
the same answer: the decision that most replies name, or the median of their numbers.

Which label a task has cannot change the answer then, but for what chance changes from call to call.
The task without a label keeps a reply of its own, to show what all labels together change.
Source: ours. The cheaper remedy is blind: the task is asked without a word of who is spoken of.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any, ClassVar

import orjson

from evenhand.agents import Agent, Ask, side_by_side
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import UnreadableReply, Unsuited
from evenhand.methods.baselines.single_prompt import answer_once, choice_agent, text_agent
from evenhand.statistics.metrics.readings import each_decision, first_number

_TEXT, _CHOICE = load("baselines/default_text"), load("baselines/default_choice")
WITHOUT_LABEL = "without_label"  # where an item carries its own words without a label


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """One call with the plain task, its label taken out before anybody is asked. Only items that
    carry such words can be answered so: those of `swap`."""

    name: ClassVar[str] = "blind"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(_TEXT), choice_agent(_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(WITHOUT_LABEL, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words without a label: blind works on `swap`, where the "
                "prompt has such a version"
            )
        return await answer_once(replace(item, prompt=words), ask, _TEXT, _CHOICE)


VERSIONS = (
    "versions"  # where an item carries its own words under every label, and how to read an answer
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaged:
    """One call for each label and one without, side by side; the reply with the decision of most,
    or with the median number, is the answer to all labels, and there is none where a reply that
    cannot be read could change it. Only items that carry such words can be answered so: those
    of `swap` with a decision or a number, and of `discrim_eval`."""

    name: ClassVar[str] = "averaged"
    calls_an_item: ClassVar[str] = "3 (labels + 1)"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (text_agent(_TEXT),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(VERSIONS, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words under other labels, or nothing to be averaged: "
                "averaged works on `swap` with --decision or --number"
            )
        payload = orjson.loads(words)
        agent = text_agent(_TEXT)
        replies = await side_by_side(*(ask(agent, prompt=text) for text in payload["texts"]))
        decided = one_for_all([reply.text for reply in replies], payload["decision"])
        return Answer(drafts=(Draft(text=decided),), stopped="single_pass")


def one_for_all(texts: Sequence[str], decision: str | None) -> str:
    """Give the first text with the decision that more name than any other, or with the median
    number, of two middle ones the lower. A reply that cannot be read counts for the runner-up, so
    that no reading of it could change the answer: a decision stands only if it leads by more than
    the unread, and a median needs all. Two decisions of equally many have no answer either: our
    choice, since any rule for them would favour some label, or none."""
    numbers = [first_number(text) for text in texts]
    values: list[Any] = each_decision(texts, decision) if decision else numbers
    read = [value for value in values if value is not None]
    unread = len(texts) - len(read)
    if decision is None:
        if unread:
            raise UnreadableReply("no_answer", f"{unread} of {len(texts)} replies have no number")
        return texts[values.index(median_low(read))]
    (first, most), (_, next_most) = [*Counter(read).most_common(2), ("", 0), ("", 0)][:2]
    if most <= next_most + unread:
        raise UnreadableReply(
            "no_answer",
            f"no decision leads: {most} replies against {next_most}, and {unread} unread",
        )
    return texts[values.index(first)]
