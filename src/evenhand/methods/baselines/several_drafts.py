"""Baselines of several drafts: one answer to all labels, the best of several, or one refined.

Counterfactual averaging (source: ours) asks the task under every label and without one, and all
labels get the same answer: the decision that most replies name, or the median of their numbers.
Which label a task has cannot change the answer then, but for what chance changes from call to call.
The task without a label keeps a reply of its own, to show what all labels together change. The
cheaper remedy is blind: the task is asked without a word about the group.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Annotated, Any, ClassVar, Self

import orjson
from pydantic import Field

from evenhand.agents import (
    Agent,
    Ask,
    Choice,
    FreeText,
    OptionReply,
    Read,
    Reply,
    side_by_side,
    words,
)
from evenhand.agents.prompts import load
from evenhand.core import Answer, Draft, Item, ScoreLimit
from evenhand.core.errors import UnreadableReply, Unsuited, UserError
from evenhand.methods.baselines.single_prompt import (
    PLAIN_CHOICE,
    PLAIN_TEXT,
    answer_once,
    choice_agent,
    draft_by,
    first_draft,
    question,
    text_agent,
)
from evenhand.methods.baselines.stored_answer import stored_draft
from evenhand.methods.evaluators import ChoiceBrain, of_choice, support_bound, support_by_rule
from evenhand.methods.shared_settings import (
    JUDGE_FAILED,
    LAST_BEFORE,
    JudgedDraft,
    Keep,
    MissingMark,
    attempted,
    kept,
    outcome,
)
from evenhand.methods.stardtox import harm_of, judges, support_of
from evenhand.statistics.metrics.readings import each_decision, first_number

WITHOUT_LABEL = "without_label"  # where an item carries its own words without a label


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """One call with the plain task, its label taken out before anybody is asked. Only items that
    carry such words can be answered so: those of `counterfactual`."""

    name: ClassVar[str] = "blind"
    calls_an_item: ClassVar[str] = "1"

    def agents(self) -> tuple[Agent[Any], ...]:
        return text_agent(PLAIN_TEXT), choice_agent(PLAIN_CHOICE, 3)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(WITHOUT_LABEL, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words without a label: blind works on counterfactual, "
                "where every prompt has such a version"
            )
        return await answer_once(replace(item, prompt=words), ask, PLAIN_TEXT, PLAIN_CHOICE)


VERSIONS = (
    "versions"  # where an item carries its own words under every label, and how to read an answer
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaged:
    """One call for each label and one without, side by side; the reply with the decision of most,
    or with the median number, is the answer to all labels, and there is none where a reply that
    cannot be read could change it. Only items that carry such words can be answered so: those
    of `counterfactual` with a decision or a number, and of `discrim_eval`."""

    name: ClassVar[str] = "averaged"
    calls_an_item: ClassVar[str] = "3 (labels + 1)"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (text_agent(PLAIN_TEXT),)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        words = item.tags.get(VERSIONS, "")
        if not words:
            raise Unsuited(
                f"item {item.id!r} has no words under other labels, or nothing to be averaged: "
                "averaged works on `counterfactual` with --decision or --number"
            )
        payload = orjson.loads(words)
        agent = text_agent(PLAIN_TEXT)
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


_TEMPERATURE = 0.7  # as for self-consistency: among equal answers there is nothing to choose
WRITER = Agent("generator", PLAIN_TEXT, FreeText, temperature=_TEMPERATURE)


def solver(options: int) -> Agent[OptionReply]:
    return choice_agent(PLAIN_CHOICE, options, Choice, _TEMPERATURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfN:
    """Best of n: several answers side by side, of which the one wins that a judge likes best.

    They are judged as StarDTox judges them. Equal answers are judged once, a single one not at all;
    of those with equal scores the first wins. A stored answer is the first of them, and others are
    asked for only where it is not within the bounds."""

    name: ClassVar[str] = "best_of_n"
    calls_an_item: ClassVar[str] = "4 to 8"

    n: Annotated[int, Field(ge=1)] = 4  # our choice
    read: Read = "json"  # as for StarDTox
    choice_brain: ChoiceBrain = "llm"  # as for StarDTox
    harm_below: float = field(default=0.1, metadata={"left_out": 0.1})  # as for StarDTox
    support_above: float | None = field(
        default=None, metadata={"left_out": None}
    )  # as for StarDTox

    def __post_init__(self) -> None:
        self.support_bound()  # refused before anything is asked

    def support_bound(self) -> float:
        """Give the bound of support in force."""
        return support_bound(self.choice_brain, self.support_above)

    def agents(self) -> tuple[Agent[Any], ...]:
        of_text, llm = judges(self.read)
        return WRITER, solver(3), of_text, of_choice(self.choice_brain, llm)

    def within(self, calls: int) -> Self:
        """An answer and a verdict each, if all answers differ; one answer needs no verdict."""
        if calls < 1:
            raise UserError(
                f"{self.name} needs at least 1 call per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        return replace(self, n=max(1, calls // 2))

    def bounds(self) -> tuple[ScoreLimit, ...]:
        """The scores that measure harm, and what they are held to."""
        return (
            ScoreLimit(score="harm", limit=self.harm_below),
            ScoreLimit(score="support", limit=self.support_bound(), higher_is_worse=False),
        )

    async def answer(self, item: Item, ask: Ask) -> Answer:
        stored = stored_draft(item)
        if stored is not None:
            return await self._repaired(item, stored, ask)
        drafts = await self._different(item, [], ask)
        if len(drafts) == 1:
            return Answer(drafts=tuple(drafts), stopped="single_pass")
        results = await side_by_side(
            *(attempted(self._judged, item, draft, ask) for draft in drafts)
        )
        judged = [result for result in results if isinstance(result, JudgedDraft)]
        if not judged:
            raise results[0].error
        return _answer(judged)

    async def _repaired(self, item: Item, stored: Draft, ask: Ask) -> Answer:
        """A stored answer within the bounds stays as it is. One without a mark stays too."""
        first = await attempted(self._judged, item, stored, ask)
        if isinstance(first, MissingMark):
            return kept([JudgedDraft(draft=stored)], "best", JUDGE_FAILED)
        if first.accepted:
            return kept([first], "best", "accepted")
        others = (await self._different(item, [stored], ask))[1:]
        results = await side_by_side(
            *(attempted(self._judged, item, draft, ask) for draft in others)
        )
        return _answer([first, *(result for result in results if isinstance(result, JudgedDraft))])

    async def _judged(self, item: Item, draft: Draft, ask: Ask) -> JudgedDraft:
        name, value = await self._mark(item, draft, ask)
        (bound,) = (candidate for candidate in self.bounds() if candidate.score == name)
        return JudgedDraft(
            draft=replace(draft, scores={name: value}),
            accepted=bound.within(value),
            harms=(bound.harm(value),),
        )

    async def _mark(self, item: Item, draft: Draft, ask: Ask) -> tuple[str, float]:
        """A text has a harm, a choice has a support."""
        if not item.choices:
            harm, _ = await harm_of(item, draft, ask, self.read)
            return "harm", harm
        if self.choice_brain == "rule":
            support, _ = await support_by_rule(item, draft, ask)
        else:
            support, _ = await support_of(item, draft, ask, self.read)
        return "support", support

    async def _different(self, item: Item, stored: list[Draft], ask: Ask) -> list[Draft]:
        """The answers without repetitions. One that is there already is the first of the `n`."""
        more = await side_by_side(*(_draft(item, ask) for _ in range(self.n - len(stored))))
        different: dict[tuple[int | None, str], Draft] = {}
        for draft in (*stored, *more):
            different.setdefault((draft.choice, draft.text), draft)
        return list(different.values())


async def _draft(item: Item, ask: Ask) -> Draft:
    if not item.choices:
        reply = await ask(WRITER, prompt=item.prompt)
        return Draft(text=reply.text, tool_calls=reply.tool_calls)
    chosen = await ask(solver(len(item.choices)), **question(item))
    return Draft(text=item.choices[chosen.index], choice=chosen.index)


def _answer(judged: list[JudgedDraft]) -> Answer:
    """The least harmful draft, and the first one where that is another."""
    # the first of equals
    first, final = judged[0], min(judged, key=lambda entry: entry.harms or ())
    drafts = (first.draft,) if final is first else (first.draft, final.draft)
    return Answer(drafts=drafts, stopped="single_pass", outcome=outcome(first, final))


class Feedback(Reply):
    feedback: Annotated[str, words(400)]
    stop: bool


# The same role throughout: a cast cannot give the feedback to another model. A judge, since its
# `stop` decides whether the text stays as it is.
CHOICE_FEEDBACK = Agent("generator", load("baselines/feedback_choice"), Feedback, kind="judge")
TEXT_FEEDBACK = Agent("generator", load("baselines/feedback_text"), Feedback, kind="judge")
_REFINE_TEXT = load("baselines/refine_text")
_REFINE_CHOICE = load("baselines/refine_choice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfRefine:
    """Self-Refine: one model answers, gives itself feedback and refines (Madaan et al. 2023).

    It ends when the feedback asks for no change, or after so many refinements. A refinement that
    the feedback does not accept is no better than the first draft, which then stays."""

    name: ClassVar[str] = "self_refine"
    calls_an_item: ClassVar[str] = "2 to 10"

    max_iterations: Annotated[int, Field(ge=0)] = 4  # the paper repeats at most four times
    keep: Keep = field(
        default="best", metadata=LAST_BEFORE
    )  # our choice; "last" is the paper's loop

    def agents(self) -> tuple[Agent[Any], ...]:
        texts = text_agent(PLAIN_TEXT), TEXT_FEEDBACK, text_agent(_REFINE_TEXT)
        return (
            *texts,
            choice_agent(PLAIN_CHOICE, 3),
            CHOICE_FEEDBACK,
            choice_agent(_REFINE_CHOICE, 3),
        )

    def within(self, calls: int) -> Self:
        """One call to answer, two for each refinement, and one to look at the last one."""
        if calls < 1:
            raise UserError(
                f"{self.name} needs at least 1 call per item, and the limit is {calls}. Raise "
                "`calls` under [limits] in the config."
            )
        others = 1 if self.keep == "last" else 2
        return replace(self, max_iterations=max(0, calls - others) // 2)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judged: list[JudgedDraft] = []
        draft = await first_draft(item, ask)
        history: list[tuple[str, str]] = []
        for iteration in range(self.max_iterations + 1):
            last = iteration == self.max_iterations
            if last and (self.keep == "last" or not iteration):
                judged.append(JudgedDraft(draft=draft))
                break
            review = await attempted(_feedback, item, draft, ask)
            if isinstance(review, MissingMark):
                judged.append(JudgedDraft(draft=draft))
                if self.keep == "last" or (not iteration and not item.answer):
                    raise review.error
                return kept(judged, self.keep, JUDGE_FAILED)
            judged.append(
                JudgedDraft(draft=draft, accepted=review.stop, harms=(float(not review.stop),))
            )
            if review.stop:
                return kept(judged, self.keep, "accepted")
            if not last:
                history.append((draft.text, review.feedback))
                draft = await draft_by(item, ask, _REFINE_TEXT, _REFINE_CHOICE, history=history)
        return kept(judged, self.keep, "max_iterations")


async def _feedback(item: Item, draft: Draft, ask: Ask) -> Feedback:
    if item.choices:
        return await ask(CHOICE_FEEDBACK, **question(item), draft=draft.text)
    return await ask(TEXT_FEEDBACK, prompt=item.prompt, draft=draft.text)
