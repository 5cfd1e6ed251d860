"""Runs over BBQ's own records, made without a model, and what an export of one holds."""

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents import Cast
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import values_per_item
from evenhand.instruments.bbq.answers import StoredAnswers, as_asked, covered
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.instruments.bbq.sample import BbqSampling, BbqSource
from evenhand.methods import Method, named
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import Progress, RunPlan, StopSignal, run
from evenhand.runs.runners.source import Source
from evenhand.runs.store import RunReader
from evenhand.views.export import FORMS, ExportedRun

KEPT = Path(__file__).parents[1] / "same_numbers/kept"


def _silent(request: ModelRequest) -> str:
    raise AssertionError(f"nobody is asked: {request}")


def made(source: Source, folder: Path, method: Method | None = None, say: Any = _silent) -> Path:
    """Run a method over a source; without one, score its stored answers."""
    chosen = method or named("stored")()
    plan = RunPlan(method=chosen, cast=Cast(ScriptedModel(say)), source=source)
    asyncio.run(run(plan, folder, progress=Progress(), stop=StopSignal()))
    return folder


def answered(drawn: pl.DataFrame, taken: list[int | None]) -> pl.DataFrame:
    """Records with the option of each that was taken; None is an answer that cannot be read."""
    said = [
        "none of them" if place is None else options[place]
        for options, place in zip(drawn["options"].to_list(), taken, strict=True)
    ]
    return drawn.with_columns(answer=pl.Series(said))


def source_of(stored: pl.DataFrame, seed: int = 0) -> BbqSource:
    """Records as items, in the order and with the order of options that a seed draws."""
    return BbqSource(stored, BbqSampling(stored=covered(stored), seed=seed))


def imported(stored: StoredAnswers, folder: Path) -> Path:
    """Score a log as `evenhand runs import` does."""
    sampling = BbqSampling(stored=covered(stored.records))
    source = BbqSource(stored.records, sampling, origin=stored.origin, notes=stored.notes)
    return made(source, folder)


def opened(folder: Path, records: pl.DataFrame) -> ExportedRun:
    """Read a run over BBQ for an export, with records that are loaded already."""
    reader = RunReader(folder)
    asked = as_asked(reader, records)
    found = report(Bbq(), reader)
    return ExportedRun(run=reader, name="run", evenhand="0.0.1", report=found, asked=asked,
                       values=values_per_item(found.instrument, reader))  # fmt: skip


def written(of: ExportedRun, form: str, to: Path) -> Path:
    to.mkdir(parents=True, exist_ok=True)
    (name,) = FORMS[form].write(of, to)
    return to / name


def exported(folder: Path, records: pl.DataFrame, form: str, to: Path) -> Path:
    return written(opened(folder, records), form, to)


def reported(folder: Path) -> Report:
    return report(Bbq(), RunReader(folder))


class Opened:
    """An exported log of Inspect, read as plain JSON."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()
            self.header = json.loads(archive.read("header.json"))
            self.start = json.loads(archive.read("_journal/start.json"))
            self.listed = json.loads(archive.read("summaries.json"))
            self.samples = [
                json.loads(archive.read(name)) for name in self.names if name.startswith("samples/")
            ]
