"""A run over a few prompts of our own, in this process, with a model that says what it is told."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents import Cast
from evenhand.core.errors import ModelError
from evenhand.findings.estimates import Section
from evenhand.findings.report import Report, report
from evenhand.instruments.realtoxicityprompts.data import RtpSampling, RtpSource
from evenhand.instruments.realtoxicityprompts.instrument import RealToxicityPrompts, RtpOptions
from evenhand.methods import DefaultPrompt, Method
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.models.base import ChatModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from evenhand.scorers import Scorer

Said = Callable[[str, int], str]  # the beginning and how often it was asked → what is said


def source(prompts: int, continuations: int) -> RtpSource:
    """So many prompts, every second of them moderate."""
    drawn = pl.DataFrame(
        {
            "id": [f"own/{n}" for n in range(prompts)],
            "text": [f"Number {n} was" for n in range(prompts)],
            "bucket": ["moderate" if n % 2 else "high" for n in range(prompts)],
            "set": ["own"] * prompts,
        }
    )
    return RtpSource(drawn, RtpSampling(prompts=prompts // 2, continuations=continuations))


async def written(
    folder: Path,
    items: RtpSource,
    said: Said,
    *,
    method: Method | None = None,
    roles: dict[str, ChatModel] | None = None,
) -> RunReader:
    asked: dict[str, int] = {}

    def script(request: Any) -> str:
        beginning = request.messages[-1].content.splitlines()[-1]
        asked[beginning] = asked.get(beginning, 0) + 1
        return said(beginning, asked[beginning] - 1)

    cast = Cast(ScriptedModel(script), roles or {})
    plan = RunPlan(method=method or DefaultPrompt(), cast=cast, source=items, concurrency=1)
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


RTP = RealToxicityPrompts()


@dataclass
class OneScorer:
    """The services of a test: whatever name is asked for, this is the scorer."""

    found: Scorer

    def scorer(self, name: str) -> Scorer:
        return self.found

    async def close(self) -> None:
        await self.found.close()


async def scored(reader: RunReader, scorer: Scorer) -> Report:
    await RTP.complete(reader, RtpOptions(allow_circular=True), OneScorer(scorer))
    return report(RTP, reader)


def values(found: Report, group: str = "all") -> dict[str, float | None]:
    estimates = found.estimates if group == "all" else found.groups["bucket"][group]
    return {e.name: e.value for e in estimates}


def table(found: Report, name: str) -> Section:
    section = found.section(name)
    assert section is not None
    return section


def bounds(found: Report) -> dict[str, tuple[float, float]]:
    """Of each measure over all prompts: if all that is missing were harmless, and toxic."""
    rows = table(found, "if_missing_were").rows
    return {str(m): (_number(a), _number(b)) for group, m, a, b in rows if group == "all"}


def _number(cell: object) -> float:
    assert isinstance(cell, float)
    return cell


def curve(found: Report) -> list[tuple[Any, ...]]:
    """Over all prompts: n, how many prompts have it, without and with replacement."""
    return [row[1:] for row in table(found, "max_of_n").rows if row[0] == "all"]


def is_circular(found: Report) -> bool:
    said = ("circular", "yes") in table(found, "scoring").rows
    assert said == any(note.startswith("CIRCULAR") for note in found.notes)
    return said


def line_by_line(lines: Sequence[str]) -> Said:
    return lambda _, turn: lines[turn % len(lines)]


async def judged(reader: RunReader, judge: str, mark: int, fails_on: str = "") -> None:
    """Let a judge of this name give every trait of every first continuation this mark; it fails
    where these words are said."""
    traits = dict.fromkeys(("fluency", "coherence", "relevance"), mark)
    reply = json.dumps({"reason": "it", **traits})
    further = RTP.further(reader, RtpOptions(quality=1))
    assert further is not None

    def said(request: ModelRequest) -> str | ModelError:
        words = " ".join(message.content for message in request.messages)
        return ModelError("it is silent") if fails_on and fails_on in words else reply

    cast = Cast(ScriptedModel(said, name=judge))
    plan = RunPlan(method=further.method, cast=cast, source=further.source)
    folder = Path(reader.path) / further.folder
    await run(plan, folder, progress=Progress(), stop=StopSignal())
