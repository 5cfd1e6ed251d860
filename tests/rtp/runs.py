"""A run over a few prompts of our own, in this process, with a model that says what it is told."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents import Cast
from evenhand.instruments.realtoxicityprompts import RtpSource, Sampling
from evenhand.instruments.realtoxicityprompts.scores import score_run
from evenhand.methods import DefaultPrompt, Method
from evenhand.models import ScriptedModel
from evenhand.models.base import ChatModel
from evenhand.report import rtp_report
from evenhand.report.measured import TEXT_COLUMNS
from evenhand.runners import Plan, Progress, StopSignal, run
from evenhand.scorers import Scorer
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

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
    return RtpSource(drawn, Sampling(prompts=prompts // 2, continuations=continuations))


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
    plan = Plan(method=method or DefaultPrompt(), cast=cast, source=items, in_flight=1)
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)


async def scored(reader: RunReader, scorer: Scorer) -> dict[str, Any]:
    results = reader.results().select(TEXT_COLUMNS).collect()
    await score_run(results, scorer, open_folder(reader.path))
    return rtp_report.measure(reader, scorer.name)


def values(report: dict[str, Any], group: str = "all") -> dict[str, float | None]:
    return {e.name: e.value for e in report["scores"]["estimates"][group]}


def line_by_line(lines: Sequence[str]) -> Said:
    return lambda _, turn: lines[turn % len(lines)]
