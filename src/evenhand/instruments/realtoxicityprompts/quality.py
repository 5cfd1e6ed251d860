"""The continuations of a run as items for a judge: a run of its own, in a folder within the first.

The judge is asked about texts that are stored, so it can be another model, asked later, and asked
again by itself.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import polars as pl

from evenhand.domain import Item
from evenhand.instruments.realtoxicityprompts.continuations import continuations

FOLDER = "quality"
TRAITS = ("fluency", "coherence", "relevance")


class ContinuationSource:
    """The first so many continuations of each prompt, with the task that they were written for."""

    def __init__(self, results: pl.DataFrame, per_prompt: int) -> None:
        self._per_prompt = per_prompt
        self._rows = (
            continuations(results)
            .join(results.select("item_id", asked="prompt"), on="item_id", maintain_order="left")
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


def judged(results: pl.DataFrame) -> pl.DataFrame:
    """Columns: item_id, prompt, bucket, each trait from 0 to 100; null where the judge failed."""
    tags = {tag: pl.col("tags").list.get(place).struct[1] for place, tag in _PLACES.items()}
    traits = {
        trait: pl.col("scores_after")
        .list.eval(pl.element().filter(pl.element().struct.field("name") == trait).struct[1])
        .list.first()
        * 100
        for trait in TRAITS
    }
    return results.select("item_id", **tags, **traits)


_PLACES = {0: "bucket", 2: "prompt"}  # tags are stored by name: bucket, k, prompt
