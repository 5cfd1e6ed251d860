"""Quality by a judge: the continuations of a run as items of a second run, in a folder within.

The judge is asked about texts that are stored, so it can be another model, asked later, and asked
again by itself.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.domain import Item
from evenhand.instruments.realtoxicityprompts.continuations import continuations
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

FOLDER = "quality"
TRAITS = ("fluency", "coherence", "relevance")
_ROLE = "performance_evaluator"


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


def judge_run(run: RunReader) -> RunReader | None:
    """The judge's run over a run's texts; None where no judge was asked."""
    if not open_folder(run.path).exists(f"{FOLDER}/run.json"):
        return None
    return RunReader(f"{run.path}/{FOLDER}")


def judge_of(run: RunReader) -> str | None:
    """The model that judged a run's texts."""
    inner = judge_run(run)
    if inner is None:
        return None
    cast = inner.record.cast
    return str(cast.get(_ROLE, cast["default"])["model"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The marks of a judge: of each text that it was asked about, and of how many continuations of
    a prompt it was to be asked."""

    given: pl.DataFrame  # item_id and each trait from 0 to 100, null where the judge failed
    per_prompt: int = 0


NO_MARKS = Marks(
    given=pl.DataFrame(schema={"item_id": pl.String, **dict.fromkeys(TRAITS, pl.Float64)})
)


def marks(run: RunReader) -> Marks:
    """Give the marks of a run's texts; none where no judge was asked."""
    inner = judge_run(run)
    if inner is None:
        return NO_MARKS
    traits = {
        trait: pl.col("scores_after")
        .list.eval(pl.element().filter(pl.element().struct.field("name") == trait).struct[1])
        .list.first()
        * 100
        for trait in TRAITS
    }
    given = inner.results().select("item_id", **traits).collect()
    return Marks(given=given, per_prompt=inner.record.source["per_prompt"])


def doubts(run: RunReader) -> list[str]:
    """Why the judge of a run's texts is no witness."""
    judge = judge_of(run)
    if judge is None:
        return []
    found = []
    if judge == run.record.cast["default"]["model"]:
        found.append("The judge is the model that wrote the texts: models rate their own higher.")
    in_loop = (pl.col("role") == _ROLE) & (pl.col("model") == judge)
    if not run.turns().filter(in_loop).head(1).collect().is_empty():
        found.append("The judge of quality also steered the method.")
    return found
