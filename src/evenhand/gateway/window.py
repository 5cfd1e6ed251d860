"""The mode `window`: a streamed answer leaves sentence by sentence, each judged with all before it.

It is weaker than `hold`. What a later sentence makes of an earlier one is seen too late: nothing
that was sent can be taken back, and an answer that is blocked ends in an error. An answer that has
to be judged as a whole (plain, JSON under a schema, several choices, /responses) is held.
"""

import asyncio
import re
from dataclasses import dataclass, field

from starlette.types import Receive

from evenhand.domain import Answer, Draft, Turn
from evenhand.gateway.checking import Checker
from evenhand.gateway.exchanges import (
    Answering,
    Talk,
    answer_held,
    head,
    reason_of,
    refuse_blocked,
    said_of,
)
from evenhand.gateway.sending import STREAM, Sender, unless_gone
from evenhand.gateway.sse import comment
from evenhand.gateway.verdicts import Action, Verdict, gravest
from evenhand.gateway.wire import Wire
from evenhand.gateway.wire.choices import ChoicesReply

# Where a sentence has ended for certain: what comes behind it has begun. "3.5" does not end at 3.
_ENDED = re.compile(r"""[.!?…]+["'”’)\]]*\s+|[。！？]+["'”’」』）]*|\n+""")


async def answer_in_windows(
    answering: Answering, talk: Talk, wire: Wire, checker: Checker, receive: Receive, sender: Sender
) -> None:
    """Send the sentences of an answer, each behind its own verdict."""
    reply = wire.reply(talk.asked)
    single = isinstance(reply, ChoicesReply) and reply.so_far is not None
    if not (single and talk.asked.stream and talk.asked.schema is None):
        await answer_held(answering, talk, wire, checker, receive, sender)
        return
    assert isinstance(reply, ChoicesReply)
    windows = _Windows(answering, talk, checker, sender, reply)
    await unless_gone(windows.answer(wire), receive, windows.still_checking)


@dataclass
class _Windows:
    """The windows of one answer."""

    answering: Answering
    talk: Talk
    checker: Checker
    sender: Sender
    reply: ChoicesReply
    judged: int = 0  # how many of the upstream's signs have a verdict
    sent: str = ""
    recorded: bool = False
    over: bool = False  # a stored text has taken the place of all that comes
    verdicts: list[Verdict] = field(default_factory=list)
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
            await self._release(len(self._so_far))
            await self._ended()
            reason = ""
        except Exception as error:
            reason = getattr(error, "code", reason)
            raise
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            if reason and not self.recorded:
                self.talk.verdicts = self.talk.verdicts or self._joined()
                self.answering.record_anyway(self.talk, Action.BLOCKED, reason)

    async def still_checking(self) -> None:
        """Show that the connection lives."""
        await self._write(comment("evenhand is checking"))

    @property
    def _so_far(self) -> str:
        return self.reply.so_far or ""

    async def _release_sentences(self) -> None:
        """Release what has ended, one by one: what is a window does not hang on how it comes in."""
        while (end := _ended(self._so_far, self.judged)) > self.judged and not self.over:
            await self._release(end)

    async def _release(self, end: int) -> None:
        """Judge the words up to there, and send what they become."""
        words = self._so_far[self.judged : end]
        if not words or self.over:
            return
        self.judged, self.talk.checking = end, True
        text = words.rstrip()
        earlier = [turn for one in self.verdicts for turn in one.turns]
        self.talk.broken_off = True  # until there is a verdict
        verdict = await self.checker.window(self.talk.asked, self.sent, text, earlier)
        self.talk.broken_off = False
        self.verdicts.append(verdict)
        refuse_blocked([verdict])
        self.over = verdict.action is Action.BLOCKED
        out = verdict.text + ("" if self.over else words[len(text) :])
        self.sent += out
        await self._write(b"".join(self.reply.window(out)))

    async def _ended(self) -> None:
        """Judge what there is beside words, put the exchange on record, and send the end."""
        beside = await self.checker.verdicts(self.talk.asked, (), self.reply.observed)
        self.talk.left_out = len(self.reply.left_out)
        self.talk.verdicts = (*self._joined(), *beside)
        refuse_blocked(beside)
        action = gravest(one.action for one in self.talk.verdicts)
        reason = reason_of(self.talk.verdicts, action)
        said = said_of(self.talk, action, reason)
        self.answering.record_anyway(self.talk, action, reason)
        self.recorded = True
        await self._write(comment(f"evenhand-action: {action}"))
        await self._write(b"".join(self.reply.rest(self.sent, said)))
        await self.sender.end()

    def _joined(self) -> tuple[Verdict, ...]:
        """One verdict of all windows: the gravest of theirs, on all words."""
        if not self.verdicts:
            return ()
        action = gravest(one.action for one in self.verdicts)
        turns: tuple[Turn, ...] = tuple(turn for one in self.verdicts for turn in one.turns)
        scores = [one.screen for one in self.verdicts if one.screen is not None]
        seconds: dict[str, float] = {}
        for one in self.verdicts:
            for cause, spent in one.seconds.items():
                seconds[cause] = seconds.get(cause, 0.0) + spent
        before, reason = self._so_far, reason_of(self.verdicts, action)
        drafts = (Draft(text=before), Draft(text=self.sent))
        asked = any(one.answer for one in self.verdicts)
        return (
            Verdict(
                action=action,
                before=before,
                text=self.sent,
                reason=reason,
                ran=all(one.ran for one in self.verdicts),
                screen=max(scores, default=None),
                answer=Answer(drafts=drafts, stopped=reason) if asked else None,
                turns=turns,
                seconds=seconds,
            ),
        )

    async def _write(self, data: bytes) -> None:
        """Write whole events, one writer at a time."""
        async with self.writing:
            if not self.sender.started:
                await self.sender.start(200, STREAM, head(self.talk, "checking"))
            if data:
                await self.sender.body(data)


def _ended(text: str, start: int) -> int:
    """The place behind the first sentence that has ended; the start where none has."""
    found = _ENDED.search(text, start)
    return found.end() if found else start
