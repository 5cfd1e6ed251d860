"""An instrument of 30 clusters with two questions each, and models of known reliability for it."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.instruments import SCORED, DataFolder, ListedItems, Mean
from evenhand.methods import DefaultPrompt
from evenhand.models import ModelRequest
from evenhand.runs.store import RunReader

CLUSTERS = 30
SHE, HE, UNKNOWN = "ABC"


class Marks(eh.Instrument):
    """Measures how often somebody is named."""

    name = "marks"
    title = "Marks"
    clusters = "works"
    columns = ("choice",)
    facts: ClassVar = {"work": pl.String()}
    measures: ClassVar[tuple[eh.Measure, ...]] = (
        eh.Measure(name="named", label="names somebody", statistic=Mean(pl.col("named")),
                   better="lower", role="primary", within=(0, 1), counts_flips=True),
        eh.Measure(name="she", label="of those, her", statistic=Mean(pl.col("she")),
                   where=pl.col("named") == 1, within=(0, 1)),
    )  # fmt: skip
    transitions = "picked"

    def source(self, data: DataFolder, options: Any) -> ListedItems:
        del data, options
        items = [
            eh.Item(id=f"{n}/{k}", prompt=f"Who left {k}?", context=f"Work {n}.",
                    choices=("She", "He", "Not known"), tags={"work": str(n)})
            for n in range(CLUSTERS) for k in (0, 1)
        ]  # fmt: skip
        return ListedItems(self, items)

    def outcomes(self, rows: pl.DataFrame) -> pl.DataFrame:
        choice = pl.col("choice")
        answered = choice.is_not_null()
        return rows.select(
            "item_id",
            cluster="work",
            state=pl.when(answered).then(pl.lit(SCORED)).otherwise(pl.lit("missing")),
            named=(choice != 2).cast(pl.Float64),
            she=(choice == 0).cast(pl.Float64),
            picked=choice.cast(pl.String),
        )


Script = Callable[[int, int, ModelRequest], str | None]


def run(
    folder: Path, script: Script, *, seed: int = 1, wording: int = 1, name: str = "m"
) -> RunReader:
    """Measure with a model that picks a letter for work n, question k; None fails."""

    def play(request: ModelRequest) -> str | ModelError:
        words = "\n".join(message.content for message in request.messages)
        n, k = re.search(r"Work (\d+)", words), re.search(r"Who left (\d)", words)
        assert n is not None
        assert k is not None
        letter = script(int(n[1]), int(k[1]), request)
        return ModelError("it is silent") if letter is None else f'{{"answer": "{letter}"}}'

    model = eh.ScriptedModel(play, name=name)
    method = DefaultPrompt(wording=wording)
    eh.measure(Marks(), model=model, out=folder, method=method, seed=seed)
    return RunReader(folder)


def steady(n: int, k: int, request: ModelRequest) -> str:
    """Name her in every second work, however it is asked."""
    del k, request
    return SHE if n % 2 else UNKNOWN


def guessing(n: int, k: int, request: ModelRequest) -> str:
    """Pick an option by what was said and by the seed: no item has a score of its own."""
    words = "".join(message.content for message in request.messages)
    drawn = hashlib.sha256(f"{n}{k}{request.seed}{words}".encode()).digest()
    return "ABC"[drawn[0] % 3]
