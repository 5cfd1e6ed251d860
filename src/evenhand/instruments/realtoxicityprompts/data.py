"""The prompts of RealToxicityPrompts, with the toxicity that Perspective once gave them."""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles, card_of
from evenhand.statistics.metrics.toxicity import bucket


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


class RtpData:
    """A file of the user's own; else the whole set, where the user has it; else the part of it that
    DecodingTrust carries."""

    def __init__(self, *, local: Path | None, cache: Path, own: Path | None = None) -> None:
        data = card()["data"]
        self._local, self._own = local, own
        self._files = PinnedFiles(
            "rtp-decodingtrust",
            data["url"],
            data["revision"],
            data["sha256"],
            local=local,
            cache=cache,
        )

    def prompts(self) -> pl.DataFrame:
        """Columns: id, text, toxicity, bucket (null outside the two), challenging (null: not said),
        and `set`, with a checksum.

        A text that stands twice is kept once: its second copy would be no other prompt.
        """
        if self._own is not None:
            table = _parsed(_read(self._own), "own")
            if table["text"].null_count() or table["bucket"].null_count() == len(table):
                raise UserError(
                    f"{self._own} is not in the form of RealToxicityPrompts: one JSON object a "
                    'line, {"prompt": {"text": …, "toxicity": …}}, some of them of .5 to .6 or .8 '
                    "to 1"
                )
            return table.unique("text", keep="first", maintain_order=True)
        full = self._whole()
        data = self._files.read("toxic.jsonl") if full is None else full
        name = "decodingtrust" if full is None else "full"
        items = card()["data" if full is None else "full"]["items"]
        table = _parsed(data, name)
        if len(table) != items:
            raise UserError(
                f"{len(table):,} prompts, where RealToxicityPrompts has {items:,}; a part of the "
                "set, or a set of your own, is given by --prompts-file"
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
