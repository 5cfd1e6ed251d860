"""The folder of a likelihood run holds its record and its rows."""

import io
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from evenhand.errors import CorruptRun, UnknownFormat, UserError
from evenhand.store.folder import Folder, open_folder
from evenhand.store.run_record import now, versions

FORMAT = 1
RECORD = "likelihood.json"
SCHEMA: dict[str, Any] = {
    "set": pl.String,
    "item_id": pl.String,
    "group": pl.String,
    "cluster": pl.String,
    "tags": pl.String,  # JSON
    "option": pl.String,
    "text": pl.String,
    "total": pl.Float64,  # log p(text | given); null: missing
    "tokens": pl.Int64,
    "reason": pl.String,  # why it is missing
}


@dataclass(frozen=True, slots=True)
class LikelihoodRecord:
    model: dict[str, Any]
    sets: dict[str, dict[str, Any]]
    # When and with what: for the reader, not compared.
    created: str
    versions: dict[str, str]

    @classmethod
    def planned(cls, model: dict[str, Any], sets: dict[str, dict[str, Any]]) -> "LikelihoodRecord":
        return cls(model, sets, now(), versions())

    def to_bytes(self) -> bytes:
        plain = {
            "format": FORMAT,
            "model": self.model,
            "sets": self.sets,
            "created": self.created,
            "versions": self.versions,
        }
        return orjson.dumps(plain, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)

    @classmethod
    def read(cls, folder: Folder) -> "LikelihoodRecord":
        try:
            raw = orjson.loads(folder.read(RECORD))
            if raw["format"] != FORMAT:
                raise UnknownFormat(f"{folder.root} has format {raw['format']}, not {FORMAT}")
            return cls(raw["model"], raw["sets"], raw["created"], raw["versions"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise CorruptRun(f"{folder.root}/{RECORD} is not a record of a run") from None


class LikelihoodRun:
    """A likelihood run, or what is there of one."""

    def __init__(self, location: str) -> None:
        self._folder = open_folder(location)
        self.path = location
        if not self._folder.exists(RECORD):
            raise UserError(f"{location} was not made by `evenhand measure likelihood`")
        self.record = LikelihoodRecord.read(self._folder)

    @staticmethod
    def is_at(location: str) -> bool:
        return open_folder(location).exists(RECORD)

    def rows(self, name: str) -> pl.DataFrame:
        """Read one row per option of a set."""
        files = [file for file in self._folder.names("likelihood") if _set_of(file) == name]
        parts = [self._part(file) for file in files]
        return pl.concat([pl.DataFrame(schema=SCHEMA), *parts])

    def _part(self, file: str) -> pl.DataFrame:
        try:
            return pl.read_parquet(io.BytesIO(self._folder.read(file)))
        except pl.exceptions.PolarsError as error:
            raise CorruptRun(f"{self.path}/{file} cannot be read: {error}") from None


def _set_of(file: str) -> str:
    return file.rpartition("/")[2].rpartition("-")[0]
