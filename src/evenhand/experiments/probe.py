"""A probe finds out by 48 short calls what a model is good for: whether it reads, follows a schema
and judges. By further calls it finds out which judges of the papers the model can play.

A question without an answer counts as a wrong one, and a sentence without a mark as marked the
wrong way round: a model that answers less never comes off better.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.agents import Agent, Read, Reply
from evenhand.agents.prompts import load
from evenhand.core import Item
from evenhand.core.errors import ModelError, UnreadableReply, UserError
from evenhand.core.package_data import read_text, read_toml
from evenhand.experiments.planted_judges import AGENTS, planted_judges
from evenhand.findings.display import Remark
from evenhand.methods.baselines.single_prompt import choice_agent, question
from evenhand.methods.stardtox import TEXT_JUDGE
from evenhand.models.base import ChatModel, ModelRequest
from evenhand.runs.store.folder import as_file_name
from evenhand.statistics.metrics.scorer_quality import auc, auroc_of_few
from evenhand.statistics.proportions import clopper_pearson

Shown = Literal["above chance", "at chance", "inconclusive"]
Judges = Literal["tells blunt bias apart", "at chance", "constant", "reversed", "inconclusive"]

OPTIONS = 3
# Where the text tells, who never says that it does not and guesses between its two things is right
# on half. Where it does not tell, chance is one of all the options.
_CHANCE_TOLD, _CHANCE_UNTOLD = 1 / 2, 1 / OPTIONS
# Our choice: who reads is right on two thirds at least. "At chance" is said only where that is
# excluded; what excludes neither it nor chance stays open.
_READS = 2 / 3
_JUDGES = 0.8  # our choice, as for scorers: a judge worth asking has this AUC on blunt sentences


class ProbePart(BaseModel):
    """A part of a probe, as it is kept."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Accuracy(ProbePart):
    """How many of a kind of question were answered right, against chance."""

    verdict: Shown
    right: int
    of: int
    unanswered: int  # of the wrong ones
    low: float
    high: float
    chance: float

    @property
    def says(self) -> Remark:
        return Remark("probe.right", **self.model_dump())


class Judging(ProbePart):
    """How well marks tell blunt stereotypes from neutral sentences."""

    verdict: Judges
    auc: float | None  # None: not one mark could be read
    low: float | None
    high: float | None
    texts: int
    unmarked: int

    @property
    def says(self) -> Remark:
        return Remark("probe.judging", **self.model_dump())


def reading(answers: Sequence[bool | None], chance: float = _CHANCE_TOLD) -> Accuracy:
    """Hold answers to questions against chance, by itself those whose text tells: right, wrong, or
    None where none could be read."""
    interval = clopper_pearson(sum(answer is True for answer in answers), len(answers))
    verdict: Shown = "inconclusive"
    if interval.low > chance:
        verdict = "above chance"
    elif interval.high < _READS:
        verdict = "at chance"
    return Accuracy(
        verdict=verdict,
        right=interval.events,
        of=interval.n,
        unanswered=sum(answer is None for answer in answers),
        low=interval.low,
        high=interval.high,
        chance=chance,
    )


def abstaining(answers: Sequence[bool | None], reads: Accuracy) -> Accuracy:
    """Hold answers to questions against chance whose text does not tell. Where reading is not
    shown, right ones show nothing: a model that says "the text does not say" of every text has them
    all."""
    result = reading(answers, _CHANCE_UNTOLD)
    if result.verdict == "above chance" and reads.verdict != "above chance":
        return result.model_copy(update={"verdict": "inconclusive"})
    return result


def judging(blunt: Sequence[float | None], neutral: Sequence[float | None]) -> Judging:
    """Compare the marks of blunt sentences, from 0 to 1, with those of neutral ones."""
    marks, labels = [*blunt, *neutral], [True] * len(blunt) + [False] * len(neutral)
    read = [mark for mark in marks if mark is not None]
    if not read:
        return Judging(
            verdict="at chance", auc=None, low=None, high=None, texts=len(marks),
            unmarked=len(marks),
        )  # fmt: skip
    # Below and above every mark: the wrong way round, whatever the others are.
    area = auc(_filled(marks, labels, blunt=-1.0, neutral=2.0), labels)
    low, high = auroc_of_few(area, len(blunt), len(neutral))
    verdict: Judges = "inconclusive"
    if len(set(marks)) == 1:
        verdict = "constant"
    elif low > 0.5:
        verdict = "tells blunt bias apart"
    elif _is_reversed(marks, labels):
        verdict = "reversed"
    elif high < _JUDGES:
        verdict = "at chance"
    return Judging(
        verdict=verdict,
        auc=area,
        low=low,
        high=high,
        texts=len(marks),
        unmarked=len(marks) - len(read),
    )


def _filled(
    marks: Sequence[float | None], labels: Sequence[bool], *, blunt: float, neutral: float
) -> list[float]:
    return [
        (blunt if label else neutral) if mark is None else mark
        for mark, label in zip(marks, labels, strict=True)
    ]


def _is_reversed(marks: Sequence[float | None], labels: Sequence[bool]) -> bool:
    """Whether the marks go the wrong way round by themselves: also where each that is missing is
    taken as right."""
    at_best = auc(_filled(marks, labels, blunt=2.0, neutral=-1.0), labels)
    return auroc_of_few(at_best, sum(labels), len(labels) - sum(labels))[1] < 0.5


READER = choice_agent(load("baselines/default_choice"), OPTIONS, temperature=0.0)


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A reading question as it is put."""

    item: Item
    right: int  # of its choices


@dataclass(frozen=True, slots=True)
class ProbeQuestions:
    """All that a probe asks."""

    told: tuple[ProbeQuestion, ...]
    untold: tuple[ProbeQuestion, ...]
    task: str
    blunt: tuple[str, ...]
    neutral: tuple[str, ...]
    sha256: str  # of the questions, and of the words and the form in which they are put

    def __len__(self) -> int:
        return sum(map(len, (self.told, self.untold, self.blunt, self.neutral)))


@cache
def questions() -> ProbeQuestions:
    """Read the questions that evenhand ships."""
    document = read_toml("evenhand.experiments", "probe_questions.toml")
    last = document["not_said"]
    by_kind = {
        kind: tuple(
            _question(f"{kind}-{n}", n, entry, last) for n, entry in enumerate(document[kind])
        )
        for kind in ("told", "untold")
    }
    return ProbeQuestions(
        told=by_kind["told"],
        untold=by_kind["untold"],
        task=document["task"],
        blunt=tuple(pair["blunt"] for pair in document["sentences"]),
        neutral=tuple(pair["neutral"] for pair in document["sentences"]),
        sha256=checksum(
            read_text("evenhand.experiments", "probe_questions.toml").encode(),
            *(READER, TEXT_JUDGE, *AGENTS),
        ),
    )


def _question(name: str, number: int, entry: dict[str, Any], not_said: str) -> ProbeQuestion:
    """Put the options in an order in which the right one is A, B and C in turn: a model that always
    says the same letter is right on a third."""
    options = [*entry["things"], not_said]
    right, position = entry.get("right", len(options) - 1), number % len(options)
    turned = [options[(right - position + n) % len(options)] for n in range(len(options))]
    item = Item(id=name, prompt=entry["asks"], context=entry["text"], choices=tuple(turned))
    return ProbeQuestion(item, position)


def checksum(data: bytes, *agents: Agent[Any]) -> str:
    """Hash the questions with the words and the form in which the agents put them."""
    put = [
        [agent.prompt.sha256, agent.temperature, agent.reply.model_json_schema()]
        for agent in agents
    ]
    return hashlib.sha256(orjson.dumps([data.decode(), put])).hexdigest()


class Schema(ProbePart):
    """How many verdicts came in the form that was asked for, at the first asking."""

    held: int
    of: int

    @property
    def says(self) -> Remark:
        return Remark("probe.schema", held=self.held, of=self.of)


class Speed(ProbePart):
    """How fast answers came, one call at a time."""

    calls: int  # that were answered
    seconds: float
    unanswered: int  # calls that failed
    not_made: int  # after several failures in a row no more are made

    @property
    def calls_per_second(self) -> float | None:
        return self.calls / self.seconds if self.calls and self.seconds else None

    @property
    def says(self) -> Remark:
        lost = self.unanswered + self.not_made
        rate = self.calls_per_second
        return Remark("probe.speed", per_second=rate, lost=lost, total=self.calls + lost)


class PaperJudging(ProbePart):
    """How well the model plays a judge of the papers, read in one way."""

    judge: str  # what the judge belongs to
    read: Read
    result: Judging


class ProbeResult(ProbePart):
    """The whole result."""

    format: Literal[1] = 1
    url: str
    model: str
    made: str  # when, in UTC
    questions: str  # the checksum of the questions and of the prompts they are put in
    reads: Accuracy
    abstains: Accuracy
    in_schema: Schema
    judge: Judging
    speed: Speed
    paper_judges: list[PaperJudging] = []  # empty: not asked
    broke_off: str | None = None  # the error after which no more calls were made


def keep(folder: Path, probed: ProbeResult) -> Path:
    """Keep a result in the place of an earlier one of the same endpoint and model."""
    path = _place(folder, probed.url, probed.model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(probed.model_dump(), option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise UserError(
            f"Could not store the result of the probe in {path} ({error}). Make that folder "
            "writable, then run it again."
        ) from None
    return path


def find(folder: Path, url: str, model: str) -> ProbeResult | None:
    """Look up what a probe has found out about a model.

    Args:
        folder: The folder of probe results.
        url: The endpoint of the model.
        model: The model's name there.

    Returns:
        The result. None if there is none, if the file cannot be read, or if an earlier evenhand
        asked other questions or used other words.
    """
    try:
        probed = ProbeResult.model_validate(orjson.loads(_place(folder, url, model).read_bytes()))
    except (OSError, orjson.JSONDecodeError, ValidationError):
        return None
    key = (url, model, questions().sha256)
    return probed if (probed.url, probed.model, probed.questions) == key else None


def _place(folder: Path, url: str, model: str) -> Path:
    digest = hashlib.sha256(f"{url} {model}".encode("utf-8", "surrogatepass")).hexdigest()
    return folder / f"{as_file_name(model)[:60]}-{digest[:16]}.json"


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
    _total: int = 0

    def __post_init__(self) -> None:
        self._total = len(questions())

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
        schema = Schema(held=judge.texts - judge.unmarked, of=self._answered - before)
        self._parts["in_schema"], self._parts["judge"] = schema, judge
        return schema, judge

    async def paper_judges(self) -> AsyncIterator[PaperJudging]:
        """Have texts with planted bias and fair ones marked by each judge of the papers."""
        judges = planted_judges()
        self._total += sum(len(judge.pairs) * judge.calls for judge in judges)
        for judge in judges:
            pairs = [
                await judge.marks(pair, number, self._ask_or_raise)
                for number, pair in enumerate(judge.pairs)
            ]
            result = judging(*zip(*pairs, strict=True))
            judged = PaperJudging(judge=judge.name, read=judge.read, result=result)
            self._parts.setdefault("paper_judges", []).append(judged)
            yield judged

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

    async def _ask_or_raise(self, agent: Agent[_R], /, **variables: Any) -> _R:
        reply = await self._ask(agent, **variables)
        if reply is None:
            raise UnreadableReply("missing", "no answer that can be read")
        return reply

    async def _ask(self, agent: Agent[_R], **variables: Any) -> _R | None:
        """Ask once. None where no answer came, or none that can be read."""
        if self.told is not None:
            self.told(self._answered + self._failed + self._not_made, self._total)
        if self.broke_off is not None:
            self._not_made += 1
            return None
        clock = asyncio.get_running_loop().time
        began = clock()
        request = ModelRequest(
            messages=agent.prompt.render(variables),
            schema=agent.reply.wire_schema(),
            temperature=agent.temperature,
            max_tokens=agent.max_tokens or _LONGEST_REPLY,
            logprobs=agent.logprobs,
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
