"""The probe asks a model its questions, one call at a time, and counts what becomes of them."""

import asyncio
import hashlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from evenhand.agents import Agent, Reply
from evenhand.domain import Item
from evenhand.errors import ModelError, UnreadableReply
from evenhand.experiments.probe.kept import Probed, Schema, Speed
from evenhand.experiments.probe.verdicts import (
    OPTIONS,
    Judging,
    Right,
    abstaining,
    judging,
    reading,
)
from evenhand.methods.baselines.single_prompt import choice_agent, question
from evenhand.methods.stardtox import TEXT_JUDGE
from evenhand.models.base import ChatModel, ModelRequest
from evenhand.prompts import load

_R = TypeVar("_R", bound=Reply)
_READER = choice_agent(load("baselines/default_choice"), OPTIONS, temperature=0.0)
_LONGEST_REPLY = 300  # tokens: a reason of 240 characters and a number, with room
_FAILURES = 3  # our choice: so many in a row, and the endpoint is gone


@dataclass(frozen=True, slots=True)
class Question:
    """A reading question as it is put."""

    item: Item
    right: int  # of its choices


@dataclass(frozen=True, slots=True)
class Questions:
    """All that a probe asks."""

    told: tuple[Question, ...]
    untold: tuple[Question, ...]
    task: str
    blunt: tuple[str, ...]
    neutral: tuple[str, ...]
    sha256: str

    def __len__(self) -> int:
        return sum(map(len, (self.told, self.untold, self.blunt, self.neutral)))


@cache
def questions() -> Questions:
    """Read the questions that evenhand ships."""
    data = resources.files(__package__).joinpath("questions.toml").read_bytes()
    given = tomllib.loads(data.decode())
    last = given["not_said"]
    asked = {
        kind: tuple(_question(f"{kind}-{n}", n, one, last) for n, one in enumerate(given[kind]))
        for kind in ("told", "untold")
    }
    return Questions(
        told=asked["told"],
        untold=asked["untold"],
        task=given["task"],
        blunt=tuple(pair["blunt"] for pair in given["sentences"]),
        neutral=tuple(pair["neutral"] for pair in given["sentences"]),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _question(name: str, number: int, given: dict[str, Any], not_said: str) -> Question:
    """Put the options in an order in which the right one is A, B and C in turn: whoever always says
    the same letter is right on a third."""
    options = [*given["things"], not_said]
    right, place = given.get("right", len(options) - 1), number % len(options)
    turned = [options[(right - place + n) % len(options)] for n in range(len(options))]
    item = Item(id=name, prompt=given["asks"], context=given["text"], choices=tuple(turned))
    return Question(item, place)


@dataclass(slots=True)
class Probing:
    """A probe under way: its parts are asked in their order, then `result` has it all.

    `seconds` is what one call may take; `told` is called before each with how far it is.
    """

    model: ChatModel
    seconds: float = 120.0
    told: Callable[[int, int], None] | None = None
    broke_off: str | None = None
    _answered: int = 0
    _failed: int = 0
    _not_made: int = 0
    _in_a_row: int = 0
    _spent: float = 0.0
    _parts: dict[str, Any] = field(default_factory=dict)

    async def reading(self) -> tuple[Right, Right]:
        """Ask the questions whose text tells the answer, and those whose text does not."""
        asked = questions()
        told = [await self._is_right(one) for one in asked.told]
        untold = [await self._is_right(one) for one in asked.untold]
        reads = reading(told)
        found = reads, abstaining(untold, reads)
        self._parts["reads"], self._parts["abstains"] = found
        return found

    async def judging(self) -> tuple[Schema, Judging]:
        """Have a blunt and a neutral sentence marked in turn, by the judge of a text."""
        asked = questions()
        pairs = [
            (await self._mark(blunt), await self._mark(neutral))
            for blunt, neutral in zip(asked.blunt, asked.neutral, strict=True)
        ]
        judge = judging(*zip(*pairs, strict=True))
        schema = Schema(held=judge.sentences - judge.unmarked, of=judge.sentences)
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
    def result(self) -> Probed:
        return Probed(
            url=str(self.model.describe().get("url", "")),
            model=self.model.name,
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
            questions=questions().sha256[:12],
            speed=self.speed,
            broke_off=self.broke_off,
            **self._parts,
        )

    async def _is_right(self, one: Question) -> bool | None:
        reply = await self._ask(_READER, **question(one.item))
        return None if reply is None else reply.index == one.right

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
        if self._in_a_row == _FAILURES:
            self.broke_off = str(error)[:300]
