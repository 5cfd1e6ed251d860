"""The probe asks a model its questions, one call at a time, and counts what becomes of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from evenhand.agents import Agent, Reply
from evenhand.core.errors import ModelError, UnreadableReply
from evenhand.experiments.probe.asked import READER, ProbeQuestion, questions
from evenhand.experiments.probe.kept import ProbeResult, Schema, Speed
from evenhand.experiments.probe.verdicts import (
    Accuracy,
    Judging,
    abstaining,
    judging,
    reading,
)
from evenhand.methods.baselines.single_prompt import question
from evenhand.methods.stardtox import TEXT_JUDGE
from evenhand.models.base import ChatModel, ModelRequest

_R = TypeVar("_R", bound=Reply)
_LONGEST_REPLY = 300  # tokens: a reason of 240 characters and a number, with room
_FAILURES = 3  # our choice: so many in a row, and the endpoint is gone


@dataclass(slots=True)
class Probing:
    """A probe under way: its parts are asked in their order, then `result` has it all.

    `seconds` is what one call may take; `told` is called before each with how far it is.
    """

    model: ChatModel
    seconds: float = 120.0
    told: Callable[[int, int], None] | None = None
    lost: str | None = None  # the error of the first call that failed
    broke_off: str | None = None
    _answered: int = 0
    _failed: int = 0
    _not_made: int = 0
    _in_a_row: int = 0
    _spent: float = 0.0
    _parts: dict[str, Any] = field(default_factory=dict)

    async def reading(self) -> tuple[Accuracy, Accuracy]:
        """Ask the questions whose text tells the answer, and those whose text does not."""
        question_set = questions()
        told_results = [await self._is_right(probe) for probe in question_set.told]
        untold = [await self._is_right(probe) for probe in question_set.untold]
        reads = reading(told_results)
        verdicts = reads, abstaining(untold, reads)
        self._parts["reads"], self._parts["abstains"] = verdicts
        return verdicts

    async def judging(self) -> tuple[Schema, Judging]:
        """Have a blunt and a neutral sentence marked in turn, by the judge of a text."""
        question_set, before = questions(), self._answered
        pairs = [
            (await self._mark(blunt), await self._mark(neutral))
            for blunt, neutral in zip(question_set.blunt, question_set.neutral, strict=True)
        ]
        judge = judging(*zip(*pairs, strict=True))
        schema = Schema(held=judge.sentences - judge.unmarked, of=self._answered - before)
        self._parts["in_schema"], self._parts["judge"] = schema, judge
        return schema, judge

    @property
    def speed(self) -> Speed:
        return Speed(
            calls=self._answered,
            seconds=self._spent,
            unanswered=self._failed,
            not_made=self._not_made,
        )

    @property
    def result(self) -> ProbeResult:
        return ProbeResult(
            url=str(self.model.describe().get("url", "")),
            model=self.model.name,
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
            questions=questions().sha256,
            speed=self.speed,
            broke_off=self.broke_off,
            **self._parts,
        )

    async def _is_right(self, probe: ProbeQuestion) -> bool | None:
        reply = await self._ask(READER, **question(probe.item))
        return None if reply is None else reply.index == probe.right

    async def _mark(self, sentence: str) -> float | None:
        reply = await self._ask(TEXT_JUDGE, prompt=questions().task, draft=sentence)
        return None if reply is None else reply.harm / 100

    async def _ask(self, agent: Agent[_R], **variables: Any) -> _R | None:
        """Ask once. None where no answer came, or none that can be read."""
        if self.told is not None:
            self.told(self._answered + self._failed + self._not_made, len(questions()))
        if self.broke_off is not None:
            self._not_made += 1
            return None
        clock = asyncio.get_running_loop().time
        began = clock()
        request = ModelRequest(
            messages=agent.prompt.render(variables),
            schema=agent.reply.wire_schema(),
            temperature=agent.temperature,
            max_tokens=_LONGEST_REPLY,
            deadline=began + self.seconds,
        )
        try:
            reply = await self.model.complete(request)
        except ModelError as error:
            self._lost(error)
            return None
        self._answered, self._in_a_row = self._answered + 1, 0
        self._spent += clock() - began
        try:
            return agent.reply.read_sample(reply.samples[0])
        except UnreadableReply:
            return None

    def _lost(self, error: ModelError) -> None:
        self._failed, self._in_a_row = self._failed + 1, self._in_a_row + 1
        self.lost = self.lost or str(error)[:300]
        if self._in_a_row == _FAILURES:
            self.broke_off = str(error)[:300]
