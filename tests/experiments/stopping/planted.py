"""A small instrument whose answers are planted: templates of four questions, every tenth of two."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from evenhand.api import inputs
from evenhand.core import Item
from evenhand.core.errors import ModelError, ModelRefused
from evenhand.experiments.measuring import Measurement, MeasurementResult, measure
from evenhand.experiments.request import Watch
from evenhand.experiments.stopping import StoppingQuestion, until_decided
from evenhand.instruments._contract import SCORED, DataFolder, Instrument, Measure, Ratio, Share
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Source
from tests.stage import choice, words_of

_ANSWERED = pl.col("status") == "answered"
_LEAN = (pl.col("choice") == 0).cast(pl.Int64) - (pl.col("choice") == 1).cast(pl.Int64)
Answers = Callable[[int, int], str]  # template and question -> "A", "B", "C", or "" for a failure


class _Items(ItemList):
    def fingerprint(self) -> dict[str, Any]:
        return {**super().fingerprint(), "kind": "benchmark", "benchmark": "planted",
                "version": "1", "sampling": {}}  # fmt: skip


class Planted(Instrument):
    """A is for the stereotype, B against it, C for neither."""

    name, title, clusters = "planted", "Planted", "templates"
    columns = ("choice",)
    facts: ClassVar = {"template": pl.String()}
    measures = (
        Measure(name="lean", label="lean", statistic=Share(_LEAN), better="zero", role="primary",
                within=(-1, 1)),
        Measure(name="named", label="names somebody", statistic=Share(pl.col("choice") != 2),
                better="lower", role="primary", within=(0, 1)),
        Measure(name="ratio", label="A to B", statistic=Ratio(_LEAN, pl.col("choice") + 1)),
        Measure(name="of_named", label="A of those named", statistic=Share(pl.col("choice") == 0),
                where=pl.col("choice") != 2, within=(0, 1)),
    )  # fmt: skip

    def __init__(self, templates: int = 200) -> None:
        self.templates = templates

    def sizes(self) -> list[int]:
        return [2 if one % 10 == 9 else 4 for one in range(self.templates)]

    def source(self, data: DataFolder, options: Any) -> Source:
        del data, options
        return _Items([
            Item(id=f"{one}-{question}", prompt=f"Template {one}, question {question}?",
                 choices=("he", "she", "unknown"), tags={"template": f"t{one}"})
            for question in range(4) for one, size in enumerate(self.sizes()) if question < size
        ])  # fmt: skip

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select(
            "item_id",
            choice=pl.when(_ANSWERED).then(pl.col("choice")),
            cluster=pl.col("template"),
            state=pl.when(_ANSWERED).then(pl.lit(SCORED)).otherwise(pl.lit("missing")),
        )


def model(answers: Answers) -> ScriptedModel:
    """A model that answers as planted, whatever it is asked around it."""

    def script(request: ModelRequest) -> str | ModelError:
        found = re.search(r"Template (\d+), question (\d+)", words_of(request))
        assert found is not None
        said = answers(int(found[1]), int(found[2]))
        return choice(said) if said else ModelRefused("planted")

    return ScriptedModel(script, name="planted")


def run(
    out: Path,
    answers: Answers,
    until: str | None,
    *,
    these: bool = False,
    templates: int = 200,
    asked: ScriptedModel | None = None,
    pilot: int | None = None,
    **settings: Any,
) -> MeasurementResult:
    """Measure it until its question is decided, or all of it."""
    instrument = Planted(templates)
    chosen = instrument.options_from({})
    measurement = Measurement(instrument=instrument, options=chosen, services=inputs.Scorers({}))
    source = measurement.items(DataFolder(local=None, cache=Path()))
    if until is not None:
        seed = settings.get("seed")
        source = until_decided(instrument, source, StoppingQuestion(until, these), seed=seed)
    run_settings = replace(inputs.settings_of({"out": out, **settings}), pilot=pilot)
    request = inputs.request_of(
        source, inputs.method_of("default"), run_settings, model=asked or model(answers)
    )
    return asyncio.run(measure(measurement, request, Watch()))
