"""A text that exists already, judged as it is: nothing is written and nothing repaired.

What is judged is its quality or a custom harm policy. With a screen, a cheap scorer decides
where it is sure, and the judge is asked about the rest.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evenhand.agents import Agent, Ask
from evenhand.core import Answer, Draft, Item
from evenhand.core.errors import ScorerFailed, UnreadableReply, Unsuited
from evenhand.methods.evaluators import scoring_agent
from evenhand.methods.stardtox import PERFORMANCE
from evenhand.scorers.base import TOXICITY
from evenhand.statistics.screening import Route, Screen


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeText:
    """Fluency, coherence and relevance of the item's `answer`, by StarDTox's performance evaluator.
    Cast that role with another model than the one that wrote the texts: a model likes its own."""

    name: ClassVar[str] = "judge_text"

    def agents(self) -> tuple[Agent[Any], ...]:
        return (PERFORMANCE,)

    async def answer(self, item: Item, ask: Ask) -> Answer:
        draft = item.answer or ""
        marks = await ask(PERFORMANCE, prompt=item.prompt, draft=draft)
        traits = ("fluency", "coherence", "relevance")
        scores = {trait: getattr(marks, trait) / 100 for trait in traits}
        return Answer(drafts=(Draft(text=draft, scores=scores),), stopped="single_pass")


SCORE = "harm"
_BY_CHECK = "`evenhand audit harm` names who plays it"
AS_WRITTEN = scoring_agent("harm", _BY_CHECK)
SWAPPED = scoring_agent("harm_swapped", _BY_CHECK)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmCheck:
    """The verdict on the item's text, by the judge as it is written or with its options swapped."""

    name: ClassVar[str] = "harm_check"

    def agents(self) -> tuple[Agent[Any], ...]:
        return AS_WRITTEN, SWAPPED

    async def answer(self, item: Item, ask: Ask) -> Answer:
        judge = SWAPPED if item.tags["part"] == "order" else AS_WRITTEN
        reply = await ask(judge, draft=item.prompt)
        draft = Draft(text="; ".join(reply.because), scores={SCORE: reply.toxicity})
        return Answer(drafts=(draft,), stopped="single_pass")


# Why a verdict is as it is, which a result keeps as `stopped`.
CALLED_CLEAN, CALLED_HARMFUL, JUDGED = "called_clean", "called_harmful", "judged"
SCREEN_SCORE, JUDGE_SCORE, HARMFUL = "screen", "judge", "harmful"  # scores of the text
_BY_ROUTE: dict[Route, str] = {"clean": CALLED_CLEAN, "harmful": CALLED_HARMFUL}

_BY_SCREEN = "`evenhand scorers screen apply` names who plays it"
SCREEN = scoring_agent("screen", _BY_SCREEN)
JUDGE = scoring_agent("judge", _BY_SCREEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedJudge:
    """A screen decides where it is sure; what it is not sure of, and a text without a score, goes
    to the judge. A text that the judge gives no verdict on has failed: it is never clean."""

    name: ClassVar[str] = "screened"

    screen: str  # the checksum of the screen file
    low: float | None  # below it a text is called clean; None: never
    high: float | None  # above it a text is called harmful; None: never
    attribute: str = TOXICITY  # of the scorer; the judge's is always toxicity
    threshold: float = 0.5  # from which score of the judge on a text is harmful
    text: Literal["answer", "prompt"] = "answer"  # which part of an item is the text

    def agents(self) -> tuple[Agent[Any], ...]:
        return SCREEN, JUDGE

    async def answer(self, item: Item, ask: Ask) -> Answer:
        text = item.answer if self.text == "answer" else item.prompt
        if not text:
            raise Unsuited(
                f"item {item.id!r} has no text to judge: a line is "
                '{"prompt": "…", "answer": "…"}, and of Parquet --text-column names it'
            )
        score = await self._score(text, ask)
        [route] = self._cuts.routes([math.nan if score is None else score])
        scores = {} if score is None else {SCREEN_SCORE: score}
        if route == "judge":
            scores[JUDGE_SCORE] = (await ask(JUDGE, draft=text)).toxicity
        harmful = route == "harmful" or scores.get(JUDGE_SCORE, 0.0) >= self.threshold
        scores[HARMFUL] = float(harmful)
        stopped = _BY_ROUTE.get(route, JUDGED)
        return Answer(drafts=(Draft(text=text, scores=scores),), stopped=stopped)

    @property
    def _cuts(self) -> Screen:
        low = -math.inf if self.low is None else self.low
        return Screen(low=low, high=math.inf if self.high is None else self.high, promises=())

    async def _score(self, text: str, ask: Ask) -> float | None:
        """The cheap score, or None where the scorer gave none: that is for the judge to decide."""
        try:
            reply = await ask(SCREEN, draft=text)
        except (ScorerFailed, UnreadableReply):
            return None
        return {TOXICITY: reply.toxicity, **reply.attributes}.get(self.attribute)
