"""The instrument that the controls are measured with: BBQ itself, over the generated questions."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from evenhand.core import Item
from evenhand.instruments import DataFolder
from evenhand.instruments.bbq.instrument import Bbq, BbqOptions
from evenhand.runs.runners import Source
from evenhand.validation.controls.items import records


class ControlQuestions(Bbq):
    """Measures as BBQ does, on generated questions: the rules are BBQ's own, only its records are
    others."""

    name = "control-questions"
    title = "control questions"

    def __init__(self, frame: pl.DataFrame | None = None) -> None:
        self.generated = records() if frame is None else frame
        questions = self.generated.select("category", "question_index")
        self.all_clusters = questions.n_unique()  # type: ignore[misc]
        # Items a category that are a block of each of its templates.
        self.half = 4 * self.generated["question_index"].n_unique()

    def records(self, data: DataFolder) -> pl.DataFrame:
        del data
        return self.generated

    def source(self, data: DataFolder, options: BbqOptions) -> Source:
        return ControlSource(self.name, super().source(data, options))


class ControlSource:
    """A sample of the generated questions, recorded under their own name and never as BBQ."""

    def __init__(self, name: str, source: Source) -> None:
        self._name = name
        self._drawn = source

    def fingerprint(self) -> dict[str, Any]:
        original = self._drawn.fingerprint()
        return {**original, "benchmark": self._name, "version": "1", "revision": None}

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return self._drawn.chunks()

    def read(self, start: int, stop: int) -> Iterator[Item]:
        return self._drawn.read(start, stop)
