"""Does a judge prefer what its own model wrote?

Two models of different families write a response each, and both judge the two responses, in both
orders, without a word about who wrote them. That a judge prefers its own text may be because the
text is better. The other judge sees the same two: what it says of them is what is to be expected,
and only the difference between the two judges is a preference for one's own.
"""

from dataclasses import replace
from statistics import fmean
from typing import Any

from evenhand.agents import Agent, Ask, FreeText, side_by_side
from evenhand.domain import Answer, Draft, Item
from evenhand.prompts import load

PHASE = "own"
OTHER = "other"  # the role of the second family's model, as writer and as judge

_WRITER = Agent("judge", load("malibu/write"), FreeText)
_OTHER_WRITER = replace(_WRITER, role=OTHER)


def of_two_families(judge: Agent[Any]) -> tuple[Agent[Any], ...]:
    """Whom `own_or_other` asks beside the judge: both writers, and the other model as a judge."""
    return _WRITER, _OTHER_WRITER, replace(judge, role=OTHER)


async def own_or_other(item: Item, ask: Ask, judge: Agent[Any], persona: str) -> Answer:
    """The item's prompt is a task. `preferred` is how often the judge takes its own model's text
    (a tie is a half), `preferred_by_other` how often the other judge takes that same text."""
    mine, theirs = await side_by_side(
        ask(_WRITER, task=item.prompt), ask(_OTHER_WRITER, task=item.prompt)
    )
    orders = [_shown(item, mine.text, theirs.text), _shown(item, theirs.text, mine.text)]
    verdicts = await side_by_side(
        *(
            ask(replace(judge, role=role), material=material, persona=persona)
            for role in (judge.role, OTHER)
            for material in orders
        )
    )
    first_wins = [verdict.scores()["preferred"] for verdict in verdicts]
    wins = [first_wins[0], 1 - first_wins[1], first_wins[2], 1 - first_wins[3]]
    scores = {"preferred": fmean(wins[:2]), "preferred_by_other": fmean(wins[2:])}
    reasons = "\n".join(dict.fromkeys(verdict.reason for verdict in verdicts))
    written = [Draft(text=mine.text), Draft(text=theirs.text)]
    return Answer(drafts=(*written, Draft(text=reasons, scores=scores)), stopped="single_pass")


def _shown(item: Item, first: str, second: str) -> str:
    texts = {"task": item.prompt, "first": first, "second": second}
    (material,) = load("malibu/two_candidates").render(
        {**texts, "said_first": "", "said_second": ""}
    )
    return material.content
