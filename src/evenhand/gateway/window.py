"""The mode `window`: a streamed answer leaves sentence by sentence, each judged alone and with what
went out before it.

It is weaker than `hold`. What a later sentence makes of an earlier one is seen too late: nothing
that was sent can be taken back, and an answer that is blocked ends in an error. An answer that has
to be judged as a whole (plain, JSON under a schema, several choices, /responses) is held.
"""

import asyncio
import re
from dataclasses import dataclass, field

from evenhand.core import Answer, Draft, Turn
from evenhand.gateway.checking import Checker
from evenhand.gateway.exchanges import (
    ExchangeAnswerer,
    ExchangeState,
    answer_held,
    as_sent,
    gravest_of,
    head,
    refuse_blocked,
    said_of,
)
from evenhand.gateway.screening import Known
from evenhand.gateway.sending import STREAM, Client
from evenhand.gateway.sse import comment
from evenhand.gateway.verdicts import HELD_BACK, Action, ExchangeVerdict
from evenhand.gateway.wire import Refused, Wire
from evenhand.gateway.wire.choices import ChoicesReply

# Where a sentence has ended for certain: what comes behind it has begun. "3.5" does not end at 3.
# Possessive: what hostile text it is tried on, it never goes back.
_ENDED = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”’)\]]*+\s++|(?<![。！？])[。！？]++["'”’」』）]*+|\n++"""
)
_MOST_WINDOWS = 200  # our choice: each costs a screen of what is before it; the rest is held
_AGAIN = 200  # our choice: so many characters of an unfinished sentence are checked again


async def answer_in_windows(
    answering: ExchangeAnswerer, talk: ExchangeState, wire: Wire, checker: Checker, client: Client
) -> None:
    """Send an answer sentence by sentence, each after its own verdict.

    Args:
        answering: Asks the upstream and records the exchange.
        talk: The exchange. One that must be judged as a whole is held instead.
        wire: The API that the client speaks.
        checker: Decides about the texts.
        client: Receives the answer.
    """
    reply = wire.reply(talk.asked)
    in_parts = talk.asked.stream and talk.asked.schema is None
    if not (in_parts and isinstance(reply, ChoicesReply) and reply.single):
        await answer_held(answering, talk, wire, checker, client)
        return
    windows = _Windows(answering, talk, checker, client, reply)
    await client.unless_gone(windows.answer(wire), windows.still_checking)


@dataclass
class _Windows:
    """The windows of one answer."""

    answering: ExchangeAnswerer
    talk: ExchangeState
    checker: Checker
    client: Client
    reply: ChoicesReply
    pending: str = ""  # what has no verdict yet
    looked: int = 0  # so much of that has no end of a sentence
    sent: str = ""
    recorded: bool = False
    ended: bool = False
    over: bool = False  # a stored text has taken the place of all that comes
    verdicts: list[ExchangeVerdict] = field(default_factory=list)
    withdrawn: list[ExchangeVerdict] = field(default_factory=list)  # of thinking, never sent
    cache: Known = field(default_factory=dict)  # what the screen said of parts of this answer
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, wire: Wire) -> None:
        """Read and send at once. Raises `Refused`; whatever happens, the exchange is on record."""
        collecting = self.answering.collected(self.talk, wire, self.reply, self.heard.set)
        reading = asyncio.ensure_future(collecting)
        reading.add_done_callback(lambda _: self.heard.set())
        reason = "broken_off"
        try:
            while not reading.done():
                await self.heard.wait()
                self.heard.clear()
                await self._release_sentences()
            await reading
            await self._release_sentences()
            await self._release(len(self.pending))
            await self._end()
            reason = ""
        except Refused as refusal:
            verdicts = self.talk.verdicts or self._joined()
            blocked = [verdict for verdict in verdicts if verdict.action is Action.BLOCKED]
            reasons = [one.reason for one in blocked if one.reason != HELD_BACK]
            reason = reasons[0] if reasons else refusal.code
            raise
        finally:
            if reason and not self.recorded:  # before anything that could be cancelled
                self.talk.verdicts = self.talk.verdicts or self._joined()
                self.answering.record_anyway(self.talk, Action.BLOCKED, reason)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def still_checking(self) -> None:
        """Show that the connection lives."""
        await self._write(comment("evenhand is checking"))

    async def _release_sentences(self) -> None:
        """Release what has ended, one by one: what is a window does not hang on how it comes in.
        What is too long to be screened is released too, for the policy to decide."""
        self._read_words()
        while len(self.verdicts) + len(self.withdrawn) < _MOST_WINDOWS:
            end = _ended(self.pending, self.looked)
            if not end and len(self.sent) + len(self.pending) > self.checker.check.longest:
                end = len(self.pending)
            if not end:
                break
            await self._release(end)
        self.looked = max(0, len(self.pending) - _AGAIN)

    def _read_words(self) -> bool:
        """Read what is new. Say whether what came before was thinking, and drop it if so."""
        words, late = self.reply.new_words("" if self.over else self.sent)
        if late:
            self.pending, self.looked = "", 0
        self.pending += words
        return late

    async def _release(self, end: int) -> None:
        """Judge the words up to there, and send what they become."""
        words, self.pending = self.pending[:end], self.pending[end:]
        self.looked = 0
        if not words or self.over:
            return
        self.talk.checking = True
        text = words.rstrip()
        self.talk.broken_off = True  # until there is a verdict
        verdict = await self.checker.window(
            self.talk.asked,
            self.sent,
            text,
            [*self.withdrawn, *self.verdicts],
            tenant=self.talk.tenant,
            cache=self.cache,
        )
        self.withdrawn.append(verdict)  # until it is known that its words are not thinking
        self.talk.broken_off = any(verdict.cut_off for verdict in self.withdrawn)
        if self._read_words():
            return
        self.verdicts.append(self.withdrawn.pop())
        refuse_blocked([verdict])
        self.over = verdict.action is Action.BLOCKED
        out = verdict.text + ("" if self.over else words[len(text) :])
        self.sent += out
        events = b"".join(self.reply.window(self.answering.redact(out)))
        await self._write(self.answering.without_key(events))

    async def _end(self) -> None:
        """Judge what there is in addition to words, record the exchange, and send the end."""
        others = await self.checker.verdicts(
            self.talk.asked, (), self.reply.observed, tenant=self.talk.tenant
        )
        self.talk.left_out = len(self.reply.left_out)
        self.talk.verdicts = (*self._joined(), *as_sent(others))
        refuse_blocked(others)
        action, reason = gravest_of(self.talk.verdicts)
        outcome = said_of(self.talk, action, reason)
        self.answering.record_anyway(self.talk, action, reason)
        self.recorded = True
        rest = self.answering.without_key(b"".join(self.reply.rest(self.sent, outcome)))
        await self._write(comment(f"evenhand-action: {action}") + rest, last=True)

    def _joined(self) -> tuple[ExchangeVerdict, ...]:
        """One verdict of all windows: the gravest of theirs, on all words."""
        judged = [*self.withdrawn, *self.verdicts]  # what agents said of either was paid
        if not judged:
            return ()
        action, reason = gravest_of(self.verdicts)
        turns: tuple[Turn, ...] = tuple(turn for verdict in judged for turn in verdict.turns)
        scores = [verdict.screen for verdict in self.verdicts if verdict.screen is not None]
        seconds: dict[str, float] = {}
        for verdict in judged:
            for cause, spent in verdict.seconds.items():
                seconds[cause] = seconds.get(cause, 0.0) + spent
        before = self.reply.so_far
        drafts = (Draft(text=before), Draft(text=self.sent))
        has_answer = any(verdict.answer for verdict in self.verdicts)
        return (
            ExchangeVerdict(
                action=action,
                before=before,
                text=self.sent,
                reason=reason,
                ran=all(verdict.ran for verdict in self.verdicts),
                screen=max(scores, default=None),
                answer=Answer(drafts=drafts, stopped=reason) if has_answer else None,
                turns=turns,
                seconds=seconds,
            ),
        )

    async def _write(self, data: bytes, *, last: bool = False) -> None:
        """Write whole events, one writer at a time, and nothing behind the last."""
        async with self.writing:
            if self.ended:
                return
            if not self.client.started:
                await self.client.start(200, STREAM, head(self.talk, "checking"))
            self.ended = last
            if last:
                await self.client.end(data)
            elif data:
                await self.client.body(data)


def _ended(text: str, start: int) -> int:
    """The place behind the first sentence that has ended, 0 if none has. None begins to end before
    `start`."""
    match = _ENDED.search(text, start)
    return match.end() if match else 0
