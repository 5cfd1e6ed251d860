"""How a text gets its verdict: a cheap screen looks at all, a team of agents at what is not clear.

| the screen's score | who decides                        | it goes out if              |
| ------------------ | ---------------------------------- | --------------------------- |
| below the band     | the screen                         | always, as it is            |
| within the band    | the method, which may revise it    | the method accepts it       |
| above the band     | the method, which has to revise it | the screen does not object  |

The screen reads English: a text that is not English is never below the band. A revised text is
screened again. Whatever goes wrong on the way is not a verdict: the policy then says what happens,
and it is never called "passed".
"""

import asyncio
import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evenhand.agents import Cast, Conversation, Limits
from evenhand.agents.conversation import declared_by
from evenhand.core import Answer, Item, Turn
from evenhand.core.errors import BudgetSpent, EvenhandError
from evenhand.gateway.policy import ANYBODY, CheckPolicy
from evenhand.gateway.schemas import satisfies
from evenhand.gateway.screening import (
    FairQueue,
    Known,
    Screening,
    ScreenScore,
    argument_text,
    declared_names,
    name_text,
)
from evenhand.gateway.verdicts import Action, ExchangeVerdict
from evenhand.gateway.wire import ClientRequest, ToolArguments, ToolName
from evenhand.methods import Method
from evenhand.runs.runners import ItemList
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.store import RunRecord
from evenhand.scorers.base import Scorer

_LOG = logging.getLogger(__name__)
CLEAN, ACCEPTED, REPAIRED = "clean", "accepted", "repaired"
NOTHING_SAID, UNREPAIRED, BREAKS_SCHEMA = "nothing_said", "unrepaired", "breaks_schema"
DEADLINE, FAILED, TOO_LONG = "deadline", "check_failed", "too_long"
OBSERVED, LANGUAGE = "cannot_be_rewritten", "language_not_screened"
NOT_JUDGED = "not_judged"  # an evaluator of the method gave no mark
_NOT_ACCEPTED = ("improved_not_accepted", "unchanged", "not_improved")
_ALREADY_SAID = "assistant, of whose answer this is the next sentence: "


class _NotJudged(EvenhandError):
    reason = NOT_JUDGED


@dataclass(slots=True)
class _CheckState:
    """What is known of a text so far; it is kept also where the check breaks off."""

    text: str
    turns: list[Turn]
    seconds: dict[str, float]
    tenant: str = ANYBODY
    sent: str = ""  # what went out before it, in windows: it is judged together with that
    cache: Known = field(default_factory=dict)  # what the screen said of parts of this answer
    screen: float | None = None
    answer: Answer | None = None


class Checker:
    """It decides by one check of the policy. Many texts may be with it at a time."""

    def __init__(
        self,
        check: CheckPolicy,
        screen: Scorer,
        method: Method,
        cast: Cast,
        shares: FairQueue | None = None,
    ) -> None:
        """
        Args:
            check: What is done with an answer.
            screen: The scorer that looks at every text.
            method: What decides about a text that the screen does not pass, and may revise it.
            cast: The models of the method's agents.
            shares: The queue before the screen, one for all checkers of a process.
        """
        self.check = check
        self._screen = Screening(check, screen, shares or FairQueue())
        self._method = method
        self._cast = cast
        self._declared = declared_by(method.agents())

    @property
    def screen(self) -> str:
        """Name and version of the scorer that looks at every text."""
        return self._screen.name

    async def verdicts(
        self,
        request: ClientRequest,
        texts: Sequence[str],
        observed: Sequence[str],
        *,
        tenant: str = ANYBODY,
    ) -> tuple[ExchangeVerdict, ...]:
        """Decide about every text of an answer. Never raises because of a text.

        Args:
            request: The client's request.
            texts: The texts that may be rewritten.
            observed: The texts that can only be passed or blocked, such as arguments of tool calls.
            tenant: Whose request it is; tenants share the screen evenly.

        Returns:
            A verdict for each text, those that may be rewritten first.
        """
        cache: Known = {}
        states = [_CheckState(text, [], {}, tenant, cache=cache) for text in (*texts, *observed)]
        if sum(len(state.text) for state in states) > self.check.longest_together:
            too_long = [await self._too_long(request, state, index < len(texts))
                        for index, state in enumerate(states)]  # fmt: skip
            return tuple(too_long)
        ends = asyncio.get_running_loop().time() + self.check.deadline
        each = self._limits(len(texts))
        limits = (each if index < len(texts) else None for index in range(len(states)))
        deciding = (self._one(request, *pair, ends) for pair in zip(states, limits, strict=True))
        return tuple(await asyncio.gather(*deciding))

    async def window(
        self,
        request: ClientRequest,
        sent: str,
        text: str,
        earlier: Sequence[ExchangeVerdict],
        *,
        tenant: str = ANYBODY,
        cache: Known | None = None,
    ) -> ExchangeVerdict:
        """Decide about the next words of an answer of which others went out. Never raises.

        They are screened alone and together with the end of those; only the new ones can be
        rewritten. What agents said of the earlier windows counts against the calls and tokens of
        the request; a call whose tokens are not known has used its share of them.

        Args:
            request: The request.
            sent: What went out before.
            text: The new words.
            earlier: The verdicts about what went out before.
            tenant: Whose request it is.
            cache: What the screen said of parts of this answer; new scores are added.

        Returns:
            The verdict about the new words.
        """
        ends = asyncio.get_running_loop().time() + self.check.deadline
        share = self.check.tokens // self.check.calls
        turns = [turn for verdict in earlier for turn in verdict.turns]
        untold = sum(verdict.cut_off for verdict in earlier)
        spent = untold * share + sum(_tokens(turn, share) for turn in turns)
        left = replace(
            self._limits(1),
            calls=max(0, self.check.calls - len(turns) - untold),
            tokens=max(1, self.check.tokens - spent),
        )
        state = _CheckState(text, [], {}, tenant, sent, {} if cache is None else cache)
        return await self._one(request, state, left, ends)

    def record(self) -> RunRecord:
        """What a run of this check is, for evidence: method, prompts, cast and limits."""
        plan = RunPlan(
            method=self._method, cast=self._cast, source=ItemList([]), limits=self._limits(1)
        )
        return plan.record()

    def _limits(self, texts: int) -> Limits:
        """The limits of one text, where a request has so many."""
        return Limits(
            calls=self.check.calls // max(1, texts),
            tokens=max(1, self.check.tokens // max(1, texts)),
            max_tokens=min(Limits().max_tokens, self.check.tokens),
            seconds=self.check.deadline,
        )

    async def _one(
        self, request: ClientRequest, state: _CheckState, limits: Limits | None, ends: float
    ) -> ExchangeVerdict:
        """Decide about one text. Without limits it is one that cannot be rewritten."""
        if not state.text.strip():
            return self._said(state, Action.PASSED, NOTHING_SAID)
        try:
            async with asyncio.timeout_at(ends):
                if limits is None:
                    return await self._looked_at(request, state)
                return await self._decided(request, state, limits)
        except TimeoutError:
            reason = DEADLINE
        except EvenhandError as error:
            reason = error.reason
        except Exception as error:  # of a method or a scorer: its faults let nothing through
            where = traceback.extract_tb(error.__traceback__)[-1]  # its words may hold the text
            _LOG.error("%s at %s:%s", type(error).__name__, where.filename, where.lineno)
            reason = FAILED
        instead = await self._in_its_place(request) if limits else ""
        return self._not_checked(state, reason, instead)

    # -- deciding --------------------------------------------------------------------------------

    async def _looked_at(self, request: ClientRequest, state: _CheckState) -> ExchangeVerdict:
        """Decide about what cannot be rewritten.

        A tool's name is a label: one that the client declared is its own word, any other is blocked
        above the band and never flagged. Of arguments the strings of several words are screened as
        text; what else is among them is a label too.
        """
        text: str = state.text
        if isinstance(text, ToolName):
            if text in declared_names(request.sent):
                return self._said(state, Action.PASSED, CLEAN)
            return await self._label(state, name_text(text))
        if isinstance(text, ToolArguments):
            label = await self._label(state, text)
            text = argument_text(text)
            if label.action is not Action.PASSED or not text.strip():
                return label
        return self._observed(state, await self._screened(state, text))

    async def _label(self, state: _CheckState, text: str) -> ExchangeVerdict:
        screened = await self._screened(state, text)
        if screened.score < self.check.band[1]:
            return self._said(state, Action.PASSED, CLEAN)
        return self._observed(state, screened)

    def _observed(self, state: _CheckState, screened: ScreenScore) -> ExchangeVerdict:
        low, high = self.check.band
        state.screen = score = screened.score
        if score >= high and self.check.on_failure != "pass_flagged":
            return self._said(state, Action.BLOCKED, OBSERVED, "")
        if score >= low:
            return self._said(state, Action.FLAGGED, OBSERVED)
        if self._readable(screened):
            return self._said(state, Action.PASSED, CLEAN)
        if self.check.not_english == "report":
            return self._said(state, Action.NOT_RUN, LANGUAGE, ran=False)
        return self._said(state, Action.FLAGGED, LANGUAGE)

    async def _decided(
        self, request: ClientRequest, state: _CheckState, limits: Limits
    ) -> ExchangeVerdict:
        low, _ = self.check.band
        screened = await self._screened(state, state.text)
        state.screen = screened.score
        if screened.score < low and self._readable(screened):
            return self._said(state, Action.PASSED, CLEAN)
        if screened.score < low and self.check.not_english == "report":
            return self._said(state, Action.NOT_RUN, LANGUAGE, ran=False)
        if limits.calls < 1:
            raise BudgetSpent("the request has more texts than calls")
        state.answer = answer = await self._revised(request, state, limits)
        return await self._weighed(request, state, answer, screened.score)

    async def _weighed(
        self, request: ClientRequest, state: _CheckState, answer: Answer, score: float
    ) -> ExchangeVerdict:
        """Decide about what the method made of a text that had this score."""
        low, high = self.check.band
        accepted = answer.stopped == "accepted"
        if answer.text == state.text:
            if accepted and score < high:
                return self._said(state, Action.PASSED, ACCEPTED)
            return await self._wanting(request, state, UNREPAIRED)
        if request.schema is not None and not await satisfies(answer.text, request.schema):
            return await self._wanting(request, state, BREAKS_SCHEMA)
        if answer.outcome in _NOT_ACCEPTED or not answer.text.strip():
            return await self._wanting(request, state, UNREPAIRED)
        again = await self._screened(state, answer.text)
        unread = not accepted and not self._readable(again)  # nobody says that it is good
        if unread or again.score >= (high if accepted else low) or again.score > score:
            return await self._wanting(request, state, UNREPAIRED)
        return self._said(state, Action.REPAIRED, REPAIRED, answer.text)

    async def _screened(self, state: _CheckState, text: str) -> ScreenScore:
        started = asyncio.get_running_loop().time()
        try:
            return await self._screen.score(state.tenant, text, state.sent, state.cache)
        finally:
            self._took(state, "screen", started)

    def _readable(self, screened: ScreenScore) -> bool:
        """Whether a low score says something: the screen knows the language."""
        return screened.english or self.check.not_english == "ignore"

    async def _revised(self, request: ClientRequest, state: _CheckState, limits: Limits) -> Answer:
        started = asyncio.get_running_loop().time()
        before = f"{_ALREADY_SAID}{state.sent}" if state.sent else ""
        context = "\n\n".join(part for part in (request.context, before) if part)
        item = Item(id="0", prompt=request.prompt, context=context, answer=state.text)
        talk = Conversation(
            self._cast, state.turns.append, limits=limits, item=item, declared=self._declared
        )
        try:
            answer = await self._method.answer(item, talk)
        finally:
            self._took(state, "agents", started)
        if answer.outcome == NOT_JUDGED:
            raise _NotJudged("an evaluator of the method gave no mark")
        return answer

    def _took(self, state: _CheckState, cause: str, started: float) -> None:
        taken = asyncio.get_running_loop().time() - started
        state.seconds[cause] = state.seconds.get(cause, 0.0) + taken

    # -- saying ----------------------------------------------------------------------------------

    async def _wanting(
        self, request: ClientRequest, state: _CheckState, reason: str
    ) -> ExchangeVerdict:
        """The verdict of a text that was found wanting and could not be mended."""
        if self.check.on_failure == "pass_flagged":
            return self._said(state, Action.FLAGGED, reason)
        return self._said(state, Action.BLOCKED, reason, await self._in_its_place(request))

    def _not_checked(self, state: _CheckState, reason: str, instead: str) -> ExchangeVerdict:
        """The verdict of a text whose check did not come to an end."""
        if self.check.on_failure == "pass_flagged":
            return self._said(state, Action.NOT_RUN, reason, ran=False)
        return self._said(state, Action.BLOCKED, reason, instead, ran=False)

    async def _too_long(
        self, request: ClientRequest, state: _CheckState, rewritable: bool
    ) -> ExchangeVerdict:
        instead = await self._in_its_place(request) if rewritable else ""
        return self._not_checked(state, TOO_LONG, instead)

    async def _in_its_place(self, request: ClientRequest) -> str:
        """The stored text, where the policy has one and the client can read it."""
        stored = self.check.stored_text if self.check.on_failure == "stored_text" else ""
        if not stored or request.schema is None or await satisfies(stored, request.schema):
            return stored
        return ""

    def _said(
        self,
        state: _CheckState,
        action: Action,
        reason: str,
        text: str | None = None,
        ran: bool = True,
    ) -> ExchangeVerdict:
        return ExchangeVerdict(
            action=action,
            before=state.text,
            text=state.text if text is None else text,
            reason=reason,
            ran=ran,
            screen=state.screen,
            answer=state.answer,
            turns=tuple(state.turns),
            seconds=state.seconds,
        )


def _tokens(turn: Turn, unknown: int) -> int:
    if turn.prompt_tokens is None or turn.completion_tokens is None:
        return unknown
    return turn.prompt_tokens + turn.completion_tokens
