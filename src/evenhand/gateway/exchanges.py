"""One request from its first byte to its last: ask the upstream, check, answer, keep the record.

In `hold` nothing of an answer leaves before the verdict about all of it. A client that waits for a
stream gets comments meanwhile, and as long as it got none of them a block is a plain error. In
`observe` the answer goes through as it comes, its header says that no check was run, and what a
check would have said is in the record afterwards.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from evenhand.gateway.breaker import Caller
from evenhand.gateway.checking import Checker
from evenhand.gateway.evidence import EvidenceLost
from evenhand.gateway.sending import PLAIN, STREAM, Client
from evenhand.gateway.sse import EventReader, comment
from evenhand.gateway.upstream import (
    MOST_BODY,
    Upstream,
    collect,
    is_stream,
    refuse_compressed,
)
from evenhand.gateway.verdicts import (
    BROKEN_OFF,
    HELD_BACK,
    Action,
    Exchange,
    ExchangeVerdict,
    gravest,
)
from evenhand.gateway.wire import (
    ClientRequest,
    ExchangeOutcome,
    MalformedReply,
    Refused,
    UpstreamReply,
    WholeAnswer,
    Wire,
)

_BLOCKED = "the answer was held back by the policy of this gateway"
_NOT_CHECKED = "the answer could not be checked, so it is held back; try again later"
_NOT_RECORDED = "the check could not be put on record, so the answer is held back; try again later"
_SOON = {"retry-after": "5"}


@dataclass(slots=True)
class ExchangeState:
    """An exchange while it goes on."""

    route: str
    asked: ClientRequest
    tenant: str
    headers: Mapping[str, str]
    detailed: bool  # the client wants to be told in the body
    id: str = field(default_factory=lambda: f"eh-{secrets.token_hex(12)}")
    at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    upstream_seconds: float | None = None  # None: it was not asked
    checking: bool = False  # agents may have been asked
    broken_off: bool = False  # a check was, so that what its agents used is not known
    verdicts: tuple[ExchangeVerdict, ...] = ()
    left_out: int = 0  # fields of the upstream's answer; their names are its words too

    @property
    def caller(self) -> Caller:
        """Whose breaker at the upstream counts."""
        return Caller(self.tenant, self.asked.model)

    @property
    def tokens(self) -> int | None:
        """The tokens that its agents used; None if unknown: the check was interrupted, or an answer
        has no count."""
        if self.broken_off or (self.checking and not self.verdicts):
            return None
        if any(verdict.cut_off for verdict in self.verdicts):
            return None
        turns = [turn for verdict in self.verdicts for turn in verdict.turns]
        counts = [(turn.prompt_tokens, turn.completion_tokens) for turn in turns]
        counted = [spent for pair in counts for spent in pair if spent is not None]
        return sum(counted) if len(counted) == 2 * len(counts) else None

    def ended(self, action: Action, reason: str) -> Exchange:
        """The exchange as evidence and metrics take it."""
        seconds = {"all": time.monotonic() - self.started}
        if self.upstream_seconds is not None:
            seconds["upstream"] = self.upstream_seconds
        for verdict in self.verdicts:  # they run side by side
            for cause, took in verdict.seconds.items():
                seconds[cause] = max(took, seconds.get(cause, 0.0))
        return Exchange(
            id=self.id,
            tenant=self.tenant,
            route=self.route,
            model=self.asked.model,
            at=self.at,
            prompt=self.asked.prompt,
            context=self.asked.context,
            messages=self.asked.messages,
            verdicts=self.verdicts,
            action=action,
            reason=reason,
            seconds=seconds,
            traceparent=self.headers.get("traceparent", ""),
        )


Recorder = Callable[[Exchange], None]
Writer = Callable[[Exchange], Awaitable[None]]
Ready = tuple[
    ExchangeOutcome, UpstreamReply, Sequence[str]
]  # what may leave: what is said of it, and its texts


class ExchangeAnswerer:
    """It answers exchanges by one checker."""

    def __init__(self, upstream: Upstream, record: Recorder, written: Writer | None = None) -> None:
        """Take what exchanges are handed to.

        Args:
            upstream: Who is asked.
            record: Takes an exchange of which nothing more goes out; it never waits.
            written: Takes an exchange before its answer goes out, and may wait until it is on
                record. Default: `record`.
        """
        self._upstream = upstream
        self._record = record
        self._written = written
        self.redact, self.without_key = upstream.redact, upstream.without_key

    # -- hold ------------------------------------------------------------------------------------

    async def held(self, talk: ExchangeState, wire: Wire, checker: Checker) -> Ready:
        """Collect an answer and check it. The exchange is recorded whatever happens.

        Args:
            talk: The exchange.
            wire: The API that the client speaks.
            checker: Decides about the texts.

        Returns:
            What may be sent: the outcome, the reply, and its texts.

        Raises:
            Refused: If the upstream fails, or the answer is blocked.
        """
        try:
            reply = wire.reply(talk.asked)
            await self.collected(talk, wire, reply)
        except Refused as refusal:
            self.record_anyway(talk, Action.BLOCKED, refusal.code)
            raise
        except BaseException:  # a client that goes away gets nothing
            self.record_anyway(talk, Action.BLOCKED, BROKEN_OFF)
            raise
        talk.left_out = len(reply.left_out)
        outcome, texts = await self.judged(talk, checker, reply)
        return outcome, reply, texts

    async def judged(
        self, talk: ExchangeState, checker: Checker, reply: WholeAnswer
    ) -> tuple[ExchangeOutcome, Sequence[str]]:
        """Check an answer that has arrived in full. The exchange is recorded whatever happens.

        Args:
            talk: The exchange.
            checker: Decides about the texts.
            reply: The answer.

        Returns:
            The outcome, and the texts that may be sent.

        Raises:
            Refused: If the answer is blocked, or the record that must come first cannot be written.
        """
        verdicts = await self._verdicts(talk, checker, reply, Action.BLOCKED)
        talk.verdicts = as_sent(verdicts)
        action, reason = gravest_of(verdicts)
        try:
            if self._written is None:
                self._record(talk.ended(action, reason))
            else:
                await self._written(talk.ended(action, reason))
        except EvidenceLost:
            raise Refused(503, "not_recorded", _NOT_RECORDED, headers=_SOON) from None
        refuse_blocked(verdicts)
        texts = [self.redact(verdict.text) for verdict in talk.verdicts[: len(reply.texts)]]
        return said_of(talk, action, reason), texts

    def record_anyway(self, talk: ExchangeState, action: Action, reason: str) -> None:
        """Record an exchange whose outcome can no longer be changed. A lost record is counted.

        Args:
            talk: The exchange.
            action: What was done with the answer.
            reason: Why, as a code; empty if nothing went wrong.
        """
        self._record(talk.ended(action, reason))

    async def collected(
        self,
        talk: ExchangeState,
        wire: Wire,
        reply: UpstreamReply,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask the upstream and read its answer to the end.

        Args:
            talk: The exchange, which receives the time that the upstream took.
            wire: The API that the client speaks.
            reply: Receives the answer.
            heard: Called after every piece of a stream.

        Raises:
            Refused: If the upstream fails, or its answer cannot be read.
        """
        started = time.monotonic()
        body = orjson.dumps(dict(talk.asked.sent))
        try:
            async with self._upstream.asked(wire.path, body, talk.headers, talk.caller) as response:
                await collect(response, reply, talk.asked.stream, heard)
        except MalformedReply:
            raise _garbled() from None
        finally:
            talk.upstream_seconds = time.monotonic() - started

    # -- observe ---------------------------------------------------------------------------------

    async def passed_on(
        self, talk: ExchangeState, wire: Wire, client: Client
    ) -> tuple[UpstreamReply | None, bytes | None]:
        """Forward an answer as it arrives. An exchange that ends early is recorded.

        Args:
            talk: The exchange.
            wire: The API that the client speaks.
            client: Receives the answer.

        Returns:
            The reply, None if a stream could not be read; and the body, None if it was a stream.

        Raises:
            Refused: If the upstream fails, or its answer cannot be read.
        """
        reply: UpstreamReply | None = wire.reply(talk.asked)
        reader, body, reason = EventReader(), bytearray(), BROKEN_OFF
        started, sent = time.monotonic(), orjson.dumps(dict(talk.asked.sent))
        try:
            async with self._upstream.asked(wire.path, sent, talk.headers, talk.caller) as response:
                refuse_compressed(response)
                stream = is_stream(response)
                await client.start(200, STREAM if stream else PLAIN, head(talk, Action.NOT_RUN))
                async for chunk in response.content.iter_any():
                    await client.body(chunk)
                    reply = _read_along(reply, reader, chunk) if stream else reply
                    body += b"" if stream or len(body) > MOST_BODY else chunk
            await client.end()
            reason = ""
        except MalformedReply:
            reason = "upstream_garbled"
            raise _garbled() from None
        except Refused as refusal:
            reason = refusal.code
            raise
        finally:
            talk.upstream_seconds = time.monotonic() - started
            if reason:
                self.record_anyway(talk, Action.NOT_RUN, reason)
        return reply, None if stream else bytes(body)

    async def checked_afterwards(
        self, talk: ExchangeState, checker: Checker, reply: UpstreamReply | None, body: bytes | None
    ) -> None:
        """Check an answer that has been sent, and record the verdict.

        Args:
            talk: The exchange.
            checker: Decides about the texts.
            reply: What was read of the answer; None if it could not be read.
            body: The body of an answer that was not a stream; None for a stream.
        """
        try:
            if reply is not None and body is not None:
                reply.read(body)
            if reply is None or (body is None and not reply.whole):
                raise MalformedReply("cut")
        except MalformedReply:
            self.record_anyway(talk, Action.NOT_RUN, "upstream_garbled")
            return
        await self.judged_afterwards(talk, checker, reply)

    async def judged_afterwards(
        self, talk: ExchangeState, checker: Checker, reply: WholeAnswer
    ) -> None:
        """Check an answer that has been sent in full, and record the verdict.

        Args:
            talk: The exchange.
            checker: Decides about the texts.
            reply: The answer.
        """
        verdicts = await self._verdicts(talk, checker, reply, Action.NOT_RUN)
        talk.verdicts = tuple(map(_as_observed, verdicts))
        self.record_anyway(talk, *gravest_of(talk.verdicts))

    async def _verdicts(
        self, talk: ExchangeState, checker: Checker, reply: WholeAnswer, otherwise: Action
    ) -> tuple[ExchangeVerdict, ...]:
        """Check an answer; one whose check is interrupted is recorded with the other action."""
        talk.checking = bool(reply.texts)
        try:
            return await checker.verdicts(
                talk.asked, reply.texts, reply.observed, tenant=talk.tenant
            )
        except BaseException:
            self.record_anyway(talk, otherwise, BROKEN_OFF)
            raise


def _read_along(
    reply: UpstreamReply | None, reader: EventReader, chunk: bytes
) -> UpstreamReply | None:
    """Read a chunk that has been passed on; nothing more of a stream that cannot be read."""
    if reply is None:
        return None
    try:
        for data in reader.feed(chunk):
            reply.feed(data)
    except MalformedReply:
        return None
    return reply


def _as_observed(verdict: ExchangeVerdict) -> ExchangeVerdict:
    """What a verdict is of a text that has left unchanged."""
    if verdict.action is Action.PASSED:
        return verdict
    action = Action.FLAGGED if verdict.ran else Action.NOT_RUN
    return replace(verdict, action=action, text=verdict.before)


def _garbled() -> Refused:
    return Refused(502, "upstream_garbled", "the upstream's answer could not be read whole")


def gravest_of(verdicts: Sequence[ExchangeVerdict]) -> tuple[Action, str]:
    """The gravest action of several verdicts, and the first reason for it."""
    action = gravest(verdict.action for verdict in verdicts)
    reasons = (verdict.reason for verdict in verdicts if verdict.action is action)
    return action, next(reasons, "nothing_said")


def as_sent(verdicts: Sequence[ExchangeVerdict]) -> tuple[ExchangeVerdict, ...]:
    """What verdicts are of texts that leave together: with one refused, none was sent."""
    if not _refused(verdicts):
        return tuple(verdicts)
    return tuple(
        replace(
            verdict,
            action=Action.BLOCKED,
            reason=verdict.reason if verdict.action is Action.BLOCKED else HELD_BACK,
            text="",
        )
        for verdict in verdicts
    )


def _refused(verdicts: Sequence[ExchangeVerdict]) -> list[ExchangeVerdict]:
    return [
        verdict for verdict in verdicts if verdict.action is Action.BLOCKED and not verdict.text
    ]


def refuse_blocked(verdicts: Sequence[ExchangeVerdict]) -> None:
    """Refuse an exchange of which a text may not leave and has nothing in its place."""
    blocked = _refused(verdicts)
    if any(verdict.ran for verdict in blocked):
        raise Refused(400, "content_blocked", _BLOCKED)
    if blocked:
        raise Refused(503, "not_checked", _NOT_CHECKED, headers=_SOON)


def said_of(talk: ExchangeState, action: Action, reason: str) -> ExchangeOutcome:
    if not talk.detailed:
        return ExchangeOutcome(action=action)
    texts = [{"action": verdict.action, "reason": verdict.reason, "screen": verdict.screen,
              "calls": len(verdict.turns)} for verdict in talk.verdicts]  # fmt: skip
    detail = {"id": talk.id, "action": action, "reason": reason, "texts": texts,
              "left_out": talk.left_out}  # fmt: skip
    return ExchangeOutcome(action=action, detail=detail)


def head(talk: ExchangeState, action: Action | str) -> dict[str, str]:
    calls = sum(len(verdict.turns) for verdict in talk.verdicts)
    return {"evenhand-action": str(action), "evenhand-id": talk.id, "evenhand-calls": str(calls)}


async def answer_held(
    answering: ExchangeAnswerer, talk: ExchangeState, wire: Wire, checker: Checker, client: Client
) -> None:
    """Check an answer in full before any of it is sent.

    Args:
        answering: Asks the upstream and records the exchange.
        talk: The exchange.
        wire: The API that the client speaks.
        checker: Decides about the texts.
        client: Receives the answer; a client that streams receives comments meanwhile.
    """

    async def still_checking() -> None:
        if not client.started:
            await client.start(200, STREAM, head(talk, "checking"))
        await client.body(comment("evenhand is checking"))

    meanwhile = still_checking if talk.asked.stream else None
    ready = await client.unless_gone(answering.held(talk, wire, checker), meanwhile)
    await _send(talk, ready, client, answering.without_key)


async def answer_observed(
    answering: ExchangeAnswerer, talk: ExchangeState, wire: Wire, checker: Checker, client: Client
) -> None:
    """Forward an answer as it arrives and check it afterwards, when the client may have gone.

    Args:
        answering: Asks the upstream and records the exchange.
        talk: The exchange.
        wire: The API that the client speaks.
        checker: Decides about the texts.
        client: Receives the answer.
    """
    reply, body = await client.unless_gone(answering.passed_on(talk, wire, client))
    await answering.checked_afterwards(talk, checker, reply, body)


async def _send(
    talk: ExchangeState, ready: Ready, client: Client, without_key: Callable[[bytes], bytes]
) -> None:
    outcome, reply, texts = ready
    headers = head(talk, outcome.action)
    if not talk.asked.stream:
        body = without_key(reply.body(texts, outcome))
        await client.start(200, PLAIN, headers)
        await client.end(body)
        return
    if client.started:  # the head said "checking"
        await client.body(comment(f"evenhand-action: {outcome.action}"))
    else:
        await client.start(200, STREAM, headers)
    for piece in reply.events(texts, outcome):
        await client.body(without_key(piece))
    await client.end()
