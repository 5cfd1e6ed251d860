"""The prompts of RealToxicityPrompts, with the toxicity that Perspective once gave them."""

import gzip
import hashlib
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.errors import UserError
from evenhand.instruments.files import PinnedFiles, card_of
from evenhand.metrics.toxicity import bucket


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


class RtpData:
    """The whole set, where the user has it; else the part of it that DecodingTrust carries."""

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        data = card()["data"]
        self._local = local
        self._files = PinnedFiles(
            "rtp-decodingtrust",
            data["url"],
            data["revision"],
            data["sha256"],
            local=local,
            cache=cache,
        )

    def prompts(self) -> pl.DataFrame:
        """Columns: id, text, toxicity, bucket (null outside the two), and `set`, with a checksum.

        A text that stands twice is kept once: its second copy would be no other prompt.
        """
        whole = self._whole()
        data = self._files.read("toxic.jsonl") if whole is None else whole
        name = "decodingtrust" if whole is None else "full"
        items = card()["data" if whole is None else "full"]["items"]
        found = _parsed(data, name)
        if len(found) != items:
            raise UserError(f"{len(found):,} prompts, where RealToxicityPrompts has {items:,}")
        return found.unique("text", keep="first", maintain_order=True)

    def _whole(self) -> bytes | None:
        if self._local is None:
            return None
        plain: Path = self._local / card()["full"]["file"]
        if plain.is_file():
            return plain.read_bytes()
        packed = plain.with_name(f"{plain.name}.gz")
        return gzip.decompress(packed.read_bytes()) if packed.is_file() else None


def _parsed(data: bytes, name: str) -> pl.DataFrame:
    fields: Any = {"prompt": pl.Struct({"text": pl.String, "toxicity": pl.Float64})}
    prompt = pl.col("prompt").struct
    return (
        pl.read_ndjson(data, schema=fields)
        .with_row_index("row")
        .select(
            id=pl.format("{}/{}", pl.lit(name), "row"),
            text=prompt.field("text"),
            toxicity=prompt.field("toxicity"),
            set=pl.lit(f"{name}@{hashlib.sha256(data).hexdigest()[:12]}"),
        )
        .with_columns(
            bucket=pl.col("toxicity").map_elements(bucket, return_dtype=pl.String, skip_nulls=True)
        )
    )
