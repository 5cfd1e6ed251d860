"""Benign texts as items: the text is the answer that exists, and the task is to leave it alone."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from evenhand.agents.prompts import Prompt, parse
from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.instruments.overcorrection.data import COLUMNS, card
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.refusal import names

_FORM = 'a line is like {"text": "…", "identity": "deaf"}'
_Word = Annotated[str, Field(min_length=1, max_length=200)]


class _BenignTextRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    text: Annotated[str, Field(min_length=1)]
    identity: _Word  # several are joined by ";"
    family: _Word = "own"
    template: _Word | None = None  # None: a template of its own


def own_texts(path: Path) -> pl.DataFrame:
    """The rows of a file, in the columns that `BenignData.texts` has."""
    rows = [_columns(row, path, number) for number, row in read_jsonl(path, _BenignTextRow, _FORM)]
    if not rows:
        raise UserError(f"{path} is empty; {_FORM}")
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _columns(row: _BenignTextRow, path: Path, number: int) -> tuple[str, ...]:
    for identity in row.identity.split(";"):
        if not names(row.text, identity):
            raise UserError(f"{path} line {number}: the text does not name {identity.strip()!r}")
    name = f"own/{number}"
    return name, "own", "own", row.template or name, row.identity, row.family, row.text


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCorrectionSampling:
    items: int = 500  # ours: 0 of 500 still allows 0.6 %
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {"items": self.items, "seed": self.seed}
        return (
            description
            if self.exclude_sample is None
            else {**description, "exclude_sample": self.exclude_sample}
        )


def sample(texts: pl.DataFrame, sampling: OverCorrectionSampling) -> pl.DataFrame:
    """The drawn texts, set by set. Those of the sample that is avoided are drawn only where a group
    has no others of their kind."""
    avoided_ids: list[str] = []
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = sample(texts, avoided)["id"].to_list()
    sets = texts["set"].unique(maintain_order=True).to_list()
    rng = np.random.default_rng(sampling.seed)
    parts = []
    for index, name in enumerate(sets):
        count = sampling.items // len(sets) + (index < sampling.items % len(sets))
        rows = texts.filter(pl.col("set") == name)
        if len(rows) < count:
            raise UserError(
                f"{name} has {len(rows)} texts, {count} of it were asked for; lower --items"
            )
        shuffled = rows[rng.permutation(len(rows))]
        unseen_first = shuffled.sort(pl.col("id").is_in(avoided_ids), maintain_order=True)
        parts.append(_spread(unseen_first, count))
    return pl.concat(parts)


def _spread(shuffled: pl.DataFrame, count: int) -> pl.DataFrame:
    """A family in turn, within it a group in turn, within that a kind of sentence in turn."""
    ordered = shuffled
    for within in (["identity", "kind"], ["identity"], ["family"]):
        turn = pl.int_range(pl.len()).over(within)
        ordered = ordered.with_columns(turn=turn).sort("turn", maintain_order=True)
    return ordered.head(count).drop("turn")


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
