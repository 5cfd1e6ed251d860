"""The prompts of RealToxicityPrompts, with the toxicity that Perspective once gave them."""

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.instruments.files import DrawnItems, PinnedFiles, card_of, prompt_of, sha256_of
from evenhand.runs.runners.source import read_item
from evenhand.statistics.metrics.toxicity import BUCKETS, bucket

card = partial(card_of, __package__)


class RtpData:
    """The user's file; else the whole dataset, where the user has it; else the part of it that
    DecodingTrust carries."""

    def __init__(self, *, local: Path | None, cache: Path, own: Path | None = None) -> None:
        self._local, self._own = local, own
        self._files = PinnedFiles.of("rtp-decodingtrust", card()["data"], local, cache)

    def prompts(self) -> pl.DataFrame:
        """Columns: id, text, toxicity, bucket (null outside the two), challenging (null: not said),
        and `set`, with a checksum. Conversations have their items as JSON in a column `item`.

        A text that appears twice is kept once: its second copy would not be another prompt.
        """
        if self._own is not None:
            data = _read(self._own)
            if _HOLDS_CONVERSATIONS.match(data):
                return _conversations(data, self._own)
            table = _parsed(data, "own")
            if table["text"].null_count() or table["bucket"].null_count() == len(table):
                raise UserError(
                    f"{self._own} is not in the format of RealToxicityPrompts: a JSON object per "
                    'line, {"prompt": {"text": …, "toxicity": …}}, with some toxicities of 0.5 to '
                    "0.6 or 0.8 to 1. Nor has it conversations, such as "
                    '{"messages": [{"role": "user", "content": …}]}'
                )
            return table.unique("text", keep="first", maintain_order=True)
        full = self._whole()
        data = self._files.read("toxic.jsonl") if full is None else full
        name = "decodingtrust" if full is None else "full"
        items = card()["data" if full is None else "full"]["items"]
        table = _parsed(data, name)
        if len(table) != items:
            raise UserError(
                f"the file has {len(table):,} prompts, but RealToxicityPrompts has {items:,}. "
                "To use a part of the dataset or your own prompts, use --prompts-file"
            )
        return table.unique("text", keep="first", maintain_order=True)

    def _whole(self) -> bytes | None:
        if self._local is None:
            return None
        plain: Path = self._local / card()["full"]["file"]
        packed = plain.with_name(f"{plain.name}.gz")
        path = next((file for file in (plain, packed) if file.is_file()), None)
        return None if path is None else _read(path)


def _read(file: Path) -> bytes:
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{file} cannot be read: {error}") from None


CONVERSATIONS = "conversations"  # the bucket of those of the user's own
GROUPS = (*BUCKETS, CONVERSATIONS)
_HOLDS_CONVERSATIONS = re.compile(rb'\s*\{[^\n]*"(?:messages|input)"\s*:')


def _conversations(data: bytes, file: Path) -> pl.DataFrame:
    lines = [(n, line) for n, line in enumerate(data.splitlines(), 1) if line.strip()]
    items = [
        read_item(line, position, f"{file} line {number}")
        for position, (number, line) in enumerate(lines)
    ]
    _refuse_twins(items, file)
    return pl.DataFrame(
        {
            "id": [f"own/{item.id}" for item in items],
            "text": [item.prompt for item in items],
            "toxicity": pl.Series([None] * len(items), dtype=pl.Float64),
            "challenging": pl.Series([None] * len(items), dtype=pl.Boolean),
            "set": [f"own@{hashlib.sha256(data).hexdigest()[:12]}"] * len(items),
            "bucket": [CONVERSATIONS] * len(items),
            "item": [orjson.dumps(item.described()).decode() for item in items],
        }
    )


def _refuse_twins(items: Sequence[Item], file: Path) -> None:
    counts = Counter(item.id for item in items)
    if twins := [name for name, count in counts.items() if count > 1]:
        raise UserError(f"{file}: the id {twins[0][:60]!r} comes twice. Use one id for each line")


def _parsed(data: bytes, name: str) -> pl.DataFrame:
    fields: Any = {
        "prompt": pl.Struct({"text": pl.String, "toxicity": pl.Float64}),
        "challenging": pl.Boolean,
    }
    prompt = pl.col("prompt").struct
    return (
        pl.read_ndjson(data, schema=fields)
        .with_row_index("row")
        .select(
            id=pl.format("{}/{}", pl.lit(name), "row"),
            text=prompt.field("text"),
            toxicity=prompt.field("toxicity"),
            challenging="challenging",
            set=pl.lit(f"{name}@{hashlib.sha256(data).hexdigest()[:12]}"),
        )
        .with_columns(
            bucket=pl.col("toxicity").map_elements(bucket, return_dtype=pl.String, skip_nulls=True)
        )
    )


# -- prompts as items -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RtpSampling:
    prompts: int | None = 100  # of each bucket; StarDTox paper, IV-A. None: all
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
            raise UserError("the file labels no prompt as challenging. Omit --challenging")
    avoided_ids: set[str] = set()
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = set(sample(prompts, avoided)["id"])
    rng = np.random.default_rng(sampling.seed)
    sampled: list[str] = []
    for kind in GROUPS:
        ids = prompts.filter(pl.col("bucket") == kind)["id"].to_numpy()
        sampled += sorted(rng.permutation(ids).tolist(), key=avoided_ids.__contains__)[
            : sampling.prompts
        ]
    return prompts.filter(pl.col("id").is_in(sampled))


prompt = partial(prompt_of, __package__)


class RtpSource(DrawnItems[pl.DataFrame]):
    """Each drawn prompt k times. The id of an item, `prompt:k`, is part of what a run's seed makes
    of it, so the same words are asked k times and answered k times."""

    def __init__(self, prompts: pl.DataFrame, sampling: RtpSampling) -> None:
        self._drawn = prompts
        self._sampling = sampling

    def fingerprint(self) -> dict[str, Any]:
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
            "sha256": sha256_of(self._drawn.select("id", *_asked(self._drawn))),
        }

    def __len__(self) -> int:
        return len(self._drawn) * self._sampling.continuations

    def read(self, start: int, stop: int) -> Iterator[Item]:
        times = self._sampling.continuations
        first, last = start // times, -(-stop // times)
        rows = self._drawn.slice(first, last - first).iter_rows(named=True)
        for index, row in enumerate(rows, start=first):
            asked = _item(row)
            for k in range(times):
                if start <= index * times + k < stop:
                    yield replace(asked, id=f"{row['id']}:{k}", tags={**asked.tags, "k": str(k)})


def _asked(rows: pl.DataFrame) -> list[str]:
    """The columns that say what is asked."""
    return ["item"] if "item" in rows.columns else ["text"]


def _item(row: dict[str, Any]) -> Item:
    """The prompt or the conversation of a row; an answer that it ends in is not asked for."""
    tags = {"prompt": row["id"], "bucket": row["bucket"], "k": "", "beginning": row["text"]}
    if row.get("item"):
        item = Item.of(orjson.loads(row["item"]))
        return replace(item, answer="", answer_calls=(), tags=tags)
    (message,) = prompt().render({"text": row["text"]})
    return Item(id="", prompt=message.content, tags=tags)
