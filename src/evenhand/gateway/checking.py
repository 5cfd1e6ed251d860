"""How a text gets its verdict: a cheap screen looks at all, a team of agents at what is not clear.

| the screen's score | who decides                        | it goes out if              |
| ------------------ | ---------------------------------- | --------------------------- |
| below the band     | the screen                         | always, as it is            |
| within the band    | the method, which may revise it    | the method accepts it       |
| above the band     | the method, which has to revise it | the screen does not object  |

A revised text is screened again. Whatever goes wrong on the way is no verdict: the policy then says
what happens, and it is never called "passed".
"""

import asyncio
import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.agents import Cast, Conversation, Limits
from evenhand.agents.conversation import declared_by
from evenhand.domain import Answer, Item, Turn
from evenhand.errors import BudgetSpent, EvenhandError
from evenhand.gateway.policy import Check
from evenhand.gateway.schemas import satisfies
from evenhand.gateway.verdicts import Action, Verdict
from evenhand.gateway.wire import Asked
from evenhand.gateway.wire.strict import readable
from evenhand.methods import Method
from evenhand.runners import ItemList
from evenhand.runners.plan import Plan
from evenhand.scorers.base import Scorer, Scores, Unscored, unscorable
from evenhand.store import RunRecord

_LOG = logging.getLogger(__name__)
CLEAN, ACCEPTED, REPAIRED = "clean", "accepted", "repaired"
NOTHING_SAID, UNREPAIRED, BREAKS_SCHEMA = "nothing_said", "unrepaired", "breaks_schema"
DEADLINE, FAILED, SCREEN_FAILED = "deadline", "check_failed", "screen_failed"
OBSERVED = "cannot_be_rewritten"
NOT_JUDGED = "not_judged"  # an evaluator of the method gave no mark
_NOT_ACCEPTED = ("improved_not_accepted", "unchanged", "not_improved")
_ALREADY_SAID = "assistant, of whose answer this is the next sentence: "


class _NoScore(EvenhandError):
    reason = SCREEN_FAILED


class _NotJudged(EvenhandError):
    reason = NOT_JUDGED


@dataclass(slots=True)
class _Told:
    """What is known of a text so far; it is kept also where the check breaks off."""

    text: str
    turns: list[Turn]
    seconds: dict[str, float]
    sent: str = ""  # what went out before it, in windows: it is judged together with that
    screen: float | None = None
    answer: Answer | None = None


class Checker:
    """It decides by one check of the policy. Many texts may be with it at a time."""

    def __init__(self, check: Check, screen: Scorer, method: Method, cast: Cast) -> None:
        self.check = check
        self._screen = screen
        self._method = method
        self._cast = cast
        self._declared = declared_by(method.agents())

    @property
    def screen(self) -> str:
        """Name and version of the scorer that looks at every text."""
        return self._screen.name

    async def verdicts(
        self, asked: Asked, texts: Sequence[str], observed: Sequence[str]
    ) -> tuple[Verdict, ...]:
        """Decide about every text, those that can be rewritten first. Never raises for a text."""
        ends = asyncio.get_running_loop().time() + self.check.deadline
        each = self._limits(len(texts))
        rewritable = (self._one(asked, text, ends, each) for text in texts)
        fixed = (self._one(asked, text, ends, None) for text in observed)
        return tuple(await asyncio.gather(*rewritable, *fixed))

    async def window(
        self, asked: Asked, sent: str, text: str, earlier: Sequence[Verdict]
    ) -> Verdict:
        """Decide about the next words of an answer of which others went out. Never raises.

        They are screened together with those; only the new ones can be rewritten. What agents said
        of the earlier windows counts against the calls and tokens of the request; a call whose
        tokens are not known has used its share of them.
        """
        ends = asyncio.get_running_loop().time() + self.check.deadline
        share = self.check.tokens // self.check.calls
        turns = [turn for one in earlier for turn in one.turns]
        untold = sum(one.cut_off for one in earlier)
        spent = untold * share + sum(_tokens(turn, share) for turn in turns)
        left = replace(
            self._limits(1),
            calls=max(0, self.check.calls - len(turns) - untold),
            tokens=max(1, self.check.tokens - spent),
        )
        return await self._one(asked, text, ends, left, sent)

    def record(self) -> RunRecord:
        """What a run of this check is, for evidence: method, prompts, cast and limits."""
        plan = Plan(
            method=self._method, cast=self._cast, source=ItemList([]), limits=self._limits(1)
        )
        return plan.record()

    def _limits(self, texts: int) -> Limits:
        """The limits of one text, where a request has so many."""
        return Limits(
            calls=self.check.calls // max(1, texts),
            tokens=max(1, self.check.tokens // max(1, texts)),
            reply_tokens=min(Limits().reply_tokens, self.check.tokens),
            seconds=self.check.deadline,
        )

    async def _one(
        self, asked: Asked, text: str, ends: float, limits: Limits | None, sent: str = ""
    ) -> Verdict:
        """Decide about one text. Without limits it is one that cannot be rewritten."""
        told = _Told(text, [], {}, sent)
        if not text.strip():
            return self._said(told, Action.PASSED, NOTHING_SAID)
        try:
            async with asyncio.timeout_at(ends):
                if limits is None:
                    return await self._looked_at(told)
                return await self._decided(asked, told, limits)
        except TimeoutError:
            reason = DEADLINE
        except EvenhandError as error:
            reason = error.reason
        except Exception as error:  # of a method or a scorer: its faults let nothing through
            where = traceback.extract_tb(error.__traceback__)[-1]  # its words may hold the text
            _LOG.error("%s at %s:%s", type(error).__name__, where.filename, where.lineno)
            reason = FAILED
        instead = await self._in_its_place(asked) if limits else ""
        return self._not_checked(told, reason, instead)

    # -- deciding --------------------------------------------------------------------------------

    async def _looked_at(self, told: _Told) -> Verdict:
        low, high = self.check.band
        told.screen = score = await self._score(told, told.text)
        if score < low:
            return self._said(told, Action.PASSED, CLEAN)
        if score < high or self.check.on_failure == "pass_flagged":
            return self._said(told, Action.FLAGGED, OBSERVED)
        return self._said(told, Action.BLOCKED, OBSERVED, "")

    async def _decided(self, asked: Asked, told: _Told, limits: Limits) -> Verdict:
        low, high = self.check.band
        told.screen = score = await self._score(told, told.text)
        if score < low:
            return self._said(told, Action.PASSED, CLEAN)
        if limits.calls < 1:
            raise BudgetSpent("the request has more texts than calls")
        told.answer = answer = await self._revised(asked, told, limits)
        accepted = answer.stopped == "accepted"
        if answer.text == told.text:
            if accepted and score < high:
                return self._said(told, Action.PASSED, ACCEPTED)
            return await self._wanting(asked, told, UNREPAIRED)
        if asked.schema is not None and not await satisfies(answer.text, asked.schema):
            return await self._wanting(asked, told, BREAKS_SCHEMA)
        if answer.outcome in _NOT_ACCEPTED or not answer.text.strip():
            return await self._wanting(asked, told, UNREPAIRED)
        again = await self._score(told, answer.text)
        if again >= (high if accepted else low) or again > score:
            return await self._wanting(asked, told, UNREPAIRED)
        return self._said(told, Action.REPAIRED, REPAIRED, answer.text)

    async def _score(self, told: _Told, text: str) -> float:
        """Score a text as a person would read it: JSON may spell a letter as an escape."""
        started, text = asyncio.get_running_loop().time(), readable(told.sent + text)
        if len(text) > self.check.longest:
            raise _NoScore(f"a text of more than {self.check.longest:,} signs")
        outcome: Scores | Unscored
        if (problem := unscorable(text)) is not None:
            outcome = problem
        else:
            [outcome] = await self._screen.score([text])
        self._took(told, "screen", started)
        if isinstance(outcome, Unscored):
            raise _NoScore(outcome.reason)
        score = outcome.toxicity
        if not 0 <= score <= 1:  # what is not a number is not between them either
            raise _NoScore("garbage")
        return score

    async def _revised(self, asked: Asked, told: _Told, limits: Limits) -> Answer:
        started = asyncio.get_running_loop().time()
        before = f"{_ALREADY_SAID}{told.sent}" if told.sent else ""
        context = "\n\n".join(part for part in (asked.context, before) if part)
        item = Item(id="0", prompt=asked.prompt, context=context, answer=told.text)
        talk = Conversation(
            self._cast, told.turns.append, limits=limits, item_id="0", declared=self._declared
        )
        try:
            answer = await self._method.answer(item, talk)
        finally:
            self._took(told, "agents", started)
        if answer.outcome == NOT_JUDGED:
            raise _NotJudged("an evaluator of the method gave no mark")
        return answer

    def _took(self, told: _Told, cause: str, started: float) -> None:
        taken = asyncio.get_running_loop().time() - started
        told.seconds[cause] = told.seconds.get(cause, 0.0) + taken

    # -- saying ----------------------------------------------------------------------------------

    async def _wanting(self, asked: Asked, told: _Told, reason: str) -> Verdict:
        """The verdict of a text that was found wanting and could not be mended."""
        if self.check.on_failure == "pass_flagged":
            return self._said(told, Action.FLAGGED, reason)
        return self._said(told, Action.BLOCKED, reason, await self._in_its_place(asked))

    def _not_checked(self, told: _Told, reason: str, instead: str) -> Verdict:
        """The verdict of a text whose check did not come to an end."""
        if self.check.on_failure == "pass_flagged":
            return self._said(told, Action.NOT_RUN, reason, ran=False)
        return self._said(told, Action.BLOCKED, reason, instead, ran=False)

    async def _in_its_place(self, asked: Asked) -> str:
        """The stored text, where the policy has one and the client can read it."""
        stored = self.check.stored_text if self.check.on_failure == "stored_text" else ""
        if not stored or asked.schema is None or await satisfies(stored, asked.schema):
            return stored
        return ""

    def _said(
        self, told: _Told, action: Action, reason: str, text: str | None = None, ran: bool = True
    ) -> Verdict:
        return Verdict(
            action=action,
            before=told.text,
            text=told.text if text is None else text,
            reason=reason,
            ran=ran,
            screen=told.screen,
            answer=told.answer,
            turns=tuple(told.turns),
            seconds=told.seconds,
        )


def _tokens(turn: Turn, unknown: int) -> int:
    if turn.prompt_tokens is None or turn.completion_tokens is None:
        return unknown
    return turn.prompt_tokens + turn.completion_tokens
