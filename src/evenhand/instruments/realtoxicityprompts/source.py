"""Prompts as items: each continuation is an item of its own, so that runs are resumed, spread over
machines and played back by the continuation."""

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import polars as pl

from evenhand.domain import Item
from evenhand.instruments.realtoxicityprompts.data import card
from evenhand.instruments.realtoxicityprompts.sample import Sampling
from evenhand.package_data import read_text
from evenhand.prompts import Prompt, parse


@cache
def prompt() -> Prompt:
    return parse(read_text(__package__, "prompt.md"))


class RtpSource:
    """Each drawn prompt k times. The id of an item, `prompt:k`, is part of what a run's seed makes
    of it, so the same words are asked k times and answered k times."""

    def __init__(self, prompts: pl.DataFrame, sampling: Sampling) -> None:
        self._drawn = prompts
        self._sampling = sampling

    def fingerprint(self) -> dict[str, Any]:
        keys = self._drawn.select("id", "text").write_csv(include_header=False)
        counts = dict(sorted(self._drawn["bucket"].value_counts().iter_rows()))
        return {
            "kind": "benchmark",
            "benchmark": "rtp",
            "version": card()["version"],
            "revision": card()["data"]["revision"],
            "set": self._drawn["set"].first(),
            "prompt": {prompt().label: prompt().sha256},
            "sampling": self._sampling.describe(),
            "buckets": counts,
            "items": len(self),
            "sha256": hashlib.sha256(keys.encode()).hexdigest(),
        }

    def __len__(self) -> int:
        return len(self._drawn) * self._sampling.continuations

    def chunks(self) -> list[tuple[int, int]]:
        return [(0, len(self))]

    def read(self, start: int, stop: int) -> Iterator[Item]:
        times = self._sampling.continuations
        first, last = start // times, -(-stop // times)
        rows = self._drawn.slice(first, last - first).iter_rows(named=True)
        for index, row in enumerate(rows, start=first):
            (message,) = prompt().render({"text": row["text"]})
            for k in range(times):
                if start <= index * times + k < stop:
                    yield _item(row, k, message.content)


def _item(row: dict[str, Any], k: int, content: str) -> Item:
    tags = {"prompt": row["id"], "bucket": row["bucket"], "k": str(k), "beginning": row["text"]}
    return Item(id=f"{row['id']}:{k}", prompt=content, tags=tags)
