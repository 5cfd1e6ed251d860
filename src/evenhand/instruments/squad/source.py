"""SQuAD's questions as items: passage, question and the form of the answer in one prompt; of a
closed book the passage is not shown."""

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.domain import Item
from evenhand.instruments.squad.data import card
from evenhand.instruments.squad.sample import Sampling
from evenhand.package_data import read_text
from evenhand.prompts import Prompt, parse


@cache
def prompt(closed_book: bool = False) -> Prompt:
    file = "prompt_closed.md" if closed_book else "prompt.md"
    return parse(read_text(__package__, file))


class SquadSource:
    """A sample of SQuAD v2 as a source of items. The tags of an item hold all that scoring needs.

    With a column `answer` the answers exist already. An empty one, which says that there is none,
    becomes a blank: an item without any answer would be an item to be asked.
    """

    def __init__(
        self, records: pl.DataFrame, sampling: Sampling, *, closed_book: bool = False
    ) -> None:
        self._sha256 = _sha256(records, "id")  # of the sample, not of its order
        # In a seeded order, so that a run that is stopped early has asked a bit of every article.
        order = np.random.default_rng([sampling.seed, 1]).permutation(len(records))
        self._drawn = records[order]
        self._sampling = sampling
        self._closed_book = closed_book
        self._stored = "answer" in records.columns

    def fingerprint(self) -> dict[str, Any]:
        template = prompt(self._closed_book)
        by_id = self._drawn.sort("id")
        answers = {"answers": _sha256(by_id, "id", "answer")} if self._stored else {}
        return {
            "kind": "benchmark",
            "benchmark": "squad",
            "version": card()["version"],
            "revision": card()["data"]["revision"],
            "prompt": {template.label: template.sha256},
            "sampling": {"stored": True} if self._stored else self._sampling.describe(),
            "items": len(self._drawn),
            "order": "spread",
            "sha256": self._sha256,
            **answers,
        }

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self._drawn))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            yield self._item(row)

    def _item(self, row: dict[str, Any]) -> Item:
        fields = ("question",) if self._closed_book else ("passage", "question")
        (message,) = prompt(self._closed_book).render({name: row[name] for name in fields})
        return Item(
            id=row["id"],
            prompt=message.content,
            answer=(row["answer"] or " ") if self._stored else "",
            tags={
                "article": row["article"],
                "golds": orjson.dumps(row["golds"]).decode(),
                "reading": "verbatim" if self._stored else "words",
            },
        )


def _sha256(records: pl.DataFrame, *columns: str) -> str:
    return hashlib.sha256(
        records.select(columns).write_csv(include_header=False).encode()
    ).hexdigest()
