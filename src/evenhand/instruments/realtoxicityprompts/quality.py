"""Quality by a judge: the continuations of a run as items of a second run, in a folder within."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core import Item
from evenhand.instruments.realtoxicityprompts.continuations import continuations
from evenhand.runs.store import RunReader
from evenhand.training.rating.judges import JudgeWithin

TRAITS = ("fluency", "coherence", "relevance")
QUALITY = JudgeWithin(folder="quality", role="performance_evaluator", traits=TRAITS)


class ContinuationSource:
    """The first so many continuations of each prompt, with the task that they were written for."""

    def __init__(self, rows: pl.DataFrame, per_prompt: int) -> None:
        self._per_prompt = per_prompt
        self._rows = (
            continuations(rows)
            .join(rows.select("item_id", "asked"), on="item_id", maintain_order="left")
            .filter(pl.col("text").is_not_null() & (pl.col("k") < per_prompt))
        )

    def fingerprint(self) -> dict[str, Any]:
        keys = self._rows.select("item_id", "text").write_csv(include_header=False)
        return {
            "kind": "continuations",
            "per_prompt": self._per_prompt,
            "items": len(self),
            "sha256": hashlib.sha256(keys.encode()).hexdigest(),
        }

    def __len__(self) -> int:
        return len(self._rows)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._rows.slice(start, stop - start).iter_rows(named=True):
            tags = {"prompt": row["prompt"], "bucket": row["bucket"], "k": str(row["k"])}
            yield Item(id=row["item_id"], prompt=row["asked"], answer=row["text"], tags=tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityMarks:
    """The marks of a judge: of each text that it was asked about, and of how many continuations of
    a prompt it was to be asked."""

    given: pl.DataFrame  # item_id and each trait from 0 to 100, null where the judge failed
    per_prompt: int = 0


NO_MARKS = QualityMarks(given=QUALITY.none())


def marks(run: RunReader) -> QualityMarks:
    """Give the marks of a run's texts; none where no judge was asked."""
    inner = QUALITY.run_of(run)
    if inner is None:
        return NO_MARKS
    table = QUALITY.marks(run).with_columns(pl.col(TRAITS) * 100)
    return QualityMarks(given=table, per_prompt=inner.record.source["per_prompt"])
