"""The prompts of RealToxicityPrompts, with the toxicity that Perspective once gave them."""

import gzip
import hashlib
import zlib
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
            found = _parsed(_read(self._own), "own")
            if found["text"].null_count() or found["bucket"].null_count() == len(found):
                raise UserError(
                    f"{self._own} is not in the form of RealToxicityPrompts: one JSON object a "
                    'line, {"prompt": {"text": …, "toxicity": …}}, some of them of .5 to .6 or .8 '
                    "to 1"
                )
            return found.unique("text", keep="first", maintain_order=True)
        whole = self._whole()
        data = self._files.read("toxic.jsonl") if whole is None else whole
        name = "decodingtrust" if whole is None else "full"
        items = card()["data" if whole is None else "full"]["items"]
        found = _parsed(data, name)
        if len(found) != items:
            raise UserError(
                f"{len(found):,} prompts, where RealToxicityPrompts has {items:,}; a part of the "
                "set, or a set of your own, is given by --prompts-file"
            )
        return found.unique("text", keep="first", maintain_order=True)

    def _whole(self) -> bytes | None:
        if self._local is None:
            return None
        plain: Path = self._local / card()["full"]["file"]
        packed = plain.with_name(f"{plain.name}.gz")
        found = next((file for file in (plain, packed) if file.is_file()), None)
        return None if found is None else _read(found)


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
