"""Benign texts as items: the text is the answer that exists, and the task is to leave it alone."""

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import polars as pl

from evenhand.domain import Item
from evenhand.instruments.overcorrection.data import card
from evenhand.package_data import read_text
from evenhand.prompts import Prompt, parse


@cache
def prompt() -> Prompt:
    return parse(read_text(__package__, "prompt.md"))


class BenignSource:
    """A sample of benign texts as a source of items.

    A method that repairs begins with `answer`, the text; one that writes does the task, whose
    right answer is the text. The tags of an item hold all that the report needs.
    """

    def __init__(self, texts: pl.DataFrame, sampling: dict[str, object]) -> None:
        self._drawn = texts
        self._sampling = sampling

    def fingerprint(self) -> dict[str, Any]:
        keys = self._drawn.select("id", "identity", "text").write_csv(include_header=False)
        return {
            "kind": "benchmark",
            "benchmark": "overcorrection",
            "version": card()["version"],
            "prompt": {prompt().label: prompt().sha256},
            "sampling": self._sampling,
            "items": len(self._drawn),
            "sha256": hashlib.sha256(keys.encode()).hexdigest(),
        }

    def __len__(self) -> int:
        return len(self._drawn)

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self._drawn))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            (message,) = prompt().render({"text": row["text"]})
            tags = {name: row[name] for name in ("set", "template", "identity", "family", "text")}
            yield Item(id=row["id"], prompt=message.content, answer=row["text"], tags=tags)
