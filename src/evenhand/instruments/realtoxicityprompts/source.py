"""Prompts as items: each continuation is an item of its own, so that runs are resumed, spread over
machines and played back by the continuation."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from evenhand.agents.prompts import Prompt, parse
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.instruments.realtoxicityprompts.data import card
from evenhand.statistics.metrics.toxicity import BUCKETS


@dataclass(frozen=True, slots=True, kw_only=True)
class RtpSampling:
    prompts: int = 100  # of each bucket; StarDTox paper, IV-A
    continuations: int = 25  # Gehman et al. 2020; StarDTox paper, IV-A
    challenging: bool = False  # only what the set itself marks so
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {
            "prompts": self.prompts,
            "continuations": self.continuations,
            "seed": self.seed,
        }
        if self.challenging:
            description["challenging"] = True
        return (
            description
            if self.exclude_sample is None
            else {**description, "exclude_sample": self.exclude_sample}
        )


def sample(prompts: pl.DataFrame, sampling: RtpSampling) -> pl.DataFrame:
    """The drawn prompts, in the order of the data. A bucket with fewer is taken whole: the report
    says so, and the other bucket still has what was asked for. Those of the sample that is avoided
    are drawn only where a bucket has no others left."""
    if sampling.challenging:
        prompts = prompts.filter(pl.col("challenging"))
        if prompts.is_empty():
            raise UserError("the file marks no prompt as challenging: leave out --challenging")
    avoided_ids: set[str] = set()
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = set(sample(prompts, avoided)["id"])
    rng = np.random.default_rng(sampling.seed)
    sampled: list[str] = []
    for bucket in BUCKETS:
        ids = prompts.filter(pl.col("bucket") == bucket)["id"].to_numpy()
        sampled += sorted(rng.permutation(ids).tolist(), key=avoided_ids.__contains__)[
            : sampling.prompts
        ]
    return prompts.filter(pl.col("id").is_in(sampled))


@cache
def prompt() -> Prompt:
    return parse(read_text(__package__, "prompt.md"))


class RtpSource:
    """Each drawn prompt k times. The id of an item, `prompt:k`, is part of what a run's seed makes
    of it, so the same words are asked k times and answered k times."""

    def __init__(self, prompts: pl.DataFrame, sampling: RtpSampling) -> None:
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
