"""Settings that several methods share: `keep`, `critique` and `wording`.

`keep`: a method returns the best of its drafts by its own evaluators, the first included.

1. A draft without a mark of every evaluator never replaces one that has them.
2. A draft replaces the first one only if no measure of harm is higher in it.
3. Among those, an accepted draft comes first, then less harm, then quality, then the earliest.
4. Where the first draft itself has no marks, nothing replaces it.

With "last" it returns the last draft whatever its marks are, as the papers do.

`critique`: two controls for a loop that revises by feedback: does the content of it matter? The
judge is asked as ever, and decides as ever whether to revise. Only the words that the reviser sees
are others: none at all ("empty"), or those said of another item ("other").

`wording`: in whose words a method asks: ours, or words of ours that carry the intent of the paper's
prompts where the two differ. What differs, and what it does: docs/methods.md. A `wording` that is a
number is another thing: the same intent in other words.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_type_hints

from evenhand.agents import Agent, Ask, FreeText
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item, Outcome
from evenhand.core.errors import ScorerFailed, UnreadableReply

Keep = Literal["best", "last"]
JUDGE_FAILED = "judge_failed"  # why a method stopped: an evaluator gave no mark
LAST_BEFORE = {"left_out": "last"}  # run records from before the setting kept the last draft
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDraft:
    """A draft with the marks of its evaluators."""

    draft: Draft
    accepted: bool = False
    harms: tuple[float, ...] | None = None  # a higher one is worse; None: a mark is missing
    quality: float = 0.0

    def rises(self, first: "JudgedDraft") -> bool:
        """Say whether a measure of harm is higher than in the first draft, or not known."""
        if self.harms is None or first.harms is None:
            return True
        return any(here > there for here, there in zip(self.harms, first.harms, strict=True))


@dataclass(frozen=True, slots=True)
class MissingMark:
    """An evaluator gave no mark, for this reason."""

    error: UnreadableReply | ScorerFailed


async def attempted(
    look: Callable[[Item, Draft, Ask], Awaitable[_T]], item: Item, draft: Draft, ask: Ask
) -> _T | MissingMark:
    """Give what an evaluator says, or why it gave no mark. Any other failure is raised.

    Args:
        look: The evaluator. It is called in here: a coroutine made outside would never be awaited
            where this one is canceled before it begins.
        item: What was asked.
        draft: The answer to look at.
        ask: How to ask an agent.
    """
    try:
        return await look(item, draft, ask)
    except (UnreadableReply, ScorerFailed) as error:
        return MissingMark(error)


def best(judged: Sequence[JudgedDraft]) -> int:
    """The index of the draft to return, by the rules above, among all in the order in which they
    were made."""
    first = judged[0]
    allowed = [at for at, candidate in enumerate(judged) if at == 0 or not candidate.rises(first)]
    return min(allowed, key=lambda at: _rank(judged[at]))  # the earliest of equals


def kept(judged: Sequence[JudgedDraft], keep: Keep, stopped: str) -> Answer:
    """The answer that these drafts make, with its outcome.

    Args:
        judged: Every draft in the order in which it was made.
        keep: Which of them is the answer.
        stopped: Why the method ended.
    """
    at = best(judged) if keep == "best" else len(judged) - 1
    drafts = tuple(candidate.draft for candidate in judged)
    return Answer(drafts=drafts, kept=at, stopped=stopped, outcome=outcome(judged[0], judged[at]))


def outcome(first: JudgedDraft, final: JudgedDraft) -> Outcome:
    """How an item ended whose first draft and answer are these."""
    if final.accepted:
        return "accepted"
    if final.harms is None or first.harms is None:
        return "not_judged"
    if (final.draft.text, final.draft.reasoning) == (first.draft.text, first.draft.reasoning):
        return "unchanged"
    better = not final.rises(first) and _rank(final) < _rank(first)
    return "improved_not_accepted" if better else "not_improved"


def _rank(candidate: JudgedDraft) -> tuple[bool, tuple[float, ...], float]:
    return not candidate.accepted, candidate.harms or (), -candidate.quality


Critique = Literal["own", "empty", "other"]

EMPTY = "Please look at it again."
OTHER_CRITIQUE = Agent(
    "other_critique",
    load("baselines/other_critique"),
    FreeText,
    kind="tool",
    cast_as=(
        "The placebo critic takes its critiques from another run. Assign that run to "
        '`other_critique`: "run:FOLDER" under [roles] in the config file, or '
        'critiques_of("FOLDER") in the Cast in Python.'
    ),
)


def critics(critique: Critique) -> tuple[Agent[FreeText], ...]:
    """The agents that a loop asks in addition to its own."""
    return (OTHER_CRITIQUE,) if critique == "other" else ()


async def shown(
    critique: Critique, own_notes: tuple[str, ...], item: Item, ask: Ask
) -> tuple[str, ...]:
    """Choose the notes that the reviser sees: the loop's own, or a placebo in their place.

    Args:
        critique: "own" for the loop's notes, "empty" for none, "other" for another item's.
        own_notes: The loop's notes.
        item: The item, for which the critique of another one is asked.
        ask: Asks an agent.

    Returns:
        The notes to show.
    """
    if critique == "own":
        return own_notes
    if critique == "empty":
        return (EMPTY,)
    return ((await ask(OTHER_CRITIQUE, item=item.id)).text,)


Wording = Literal["ours", "paper"]


def has_wordings(method: type[Any]) -> bool:
    """True of a method that can be asked for in the paper's intent."""
    return get_type_hints(method).get("wording") == Wording


def worded(agent: Agent[Any], wording: Wording) -> Agent[Any]:
    """The agent, told what it is to do in these words: for the paper's, by `<prompt>_paper`."""
    if wording == "ours":
        return agent
    return replace(agent, prompt=load(f"{agent.prompt.id}_{wording}"))


async def ask_worded(ask: Ask, agent: Agent[Any], wording: Wording, **values: Any) -> Any:
    """Ask an agent with the prompt of the given wording.

    Args:
        ask: Asks an agent.
        agent: The agent in its usual wording.
        wording: "ours" or "paper".
        **values: Variables of either wording; the prompt takes those that it has a place for.

    Returns:
        The agent's reply.
    """
    reworded = worded(agent, wording)
    return await ask(reworded, **{name: values[name] for name in reworded.prompt.variables})
