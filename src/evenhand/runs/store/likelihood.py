"""Reads likelihood runs in the form of before: one folder for several sets, with its own record.

    RUN/
      likelihood.json               what was planned
      likelihood/<set>-<n>.parquet  one row per option of a block of items

Runs of today are ordinary run folders; nothing writes this form any more.
"""

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import orjson
import polars as pl

from evenhand.core import Answer, Answered, Draft, Event, Failed, Item, Result
from evenhand.core.errors import CorruptRun, UnknownFormat
from evenhand.runs.store import tables
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.runs.store.reader import RunReader, Totals
from evenhand.runs.store.run_record import RunRecord

_FORMAT = 1
RECORD = "likelihood.json"
_SCHEMA: dict[str, Any] = {
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


class OldLikelihoods:
    """A folder with the likelihoods of several sets."""

    def __init__(self, location: str) -> None:
        self._folder = open_folder(location)
        self._location = location
        try:
            self._record = orjson.loads(self._folder.read(RECORD))
            if self._record["format"] != _FORMAT:
                version = self._record["format"]
                raise UnknownFormat(f"{location} has format {version}, not {_FORMAT}")
            self.sets: dict[str, dict[str, Any]] = self._record["sets"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise CorruptRun(f"{location}/{RECORD} is not a record of a run") from None

    @property
    def model(self) -> str | None:
        name: str | None = self._record["model"].get("model")
        return name

    @property
    def created(self) -> str:
        return str(self._record["created"])

    @staticmethod
    def are_at(folder: Folder) -> bool:
        return folder.exists(RECORD)

    def run(self, name: str, options: Sequence[str]) -> "OldLikelihoodRun":
        """One of the sets as a run of its own; `options` names an item's options in order."""
        record = RunRecord(
            method={"name": "likelihood", "settings": {}},
            prompts={},
            cast={"default": self._record["model"]},
            source={"kind": "benchmark", "benchmark": name, **self.sets[name]},
            limits={},
            seed=None,
            created=self._record["created"],
            versions=self._record["versions"],
        )
        return OldLikelihoodRun(self._location, record, _results(self._rows(name), options))

    def _rows(self, name: str) -> pl.DataFrame:
        """One row per option of a set."""
        files = [file for file in self._folder.names("likelihood") if _set_of(file) == name]
        return pl.concat([pl.DataFrame(schema=_SCHEMA), *map(self._part, files)])

    def _part(self, file: str) -> pl.DataFrame:
        try:
            return pl.read_parquet(io.BytesIO(self._folder.read(file)))
        except pl.exceptions.PolarsError as error:
            raise CorruptRun(f"{self._location}/{file} cannot be read: {error}") from None


class OldLikelihoodRun(RunReader):
    """An old likelihood run is one set of such a folder, read as any run is. It has no turns and no
    ledger."""

    def __init__(self, location: str, record: RunRecord, results: pl.DataFrame) -> None:
        self.path = location
        self.record = record
        self._results = results

    def results(self) -> pl.LazyFrame:
        return self._results.lazy()

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield self._results.select(columns)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        yield from ()

    def digests(self) -> dict[str, str]:
        return {}

    def totals(self) -> Totals:
        failed = Counter(self._results["reason"].drop_nulls())
        answered = len(self._results) - failed.total()
        computed = {"answered", "failed", "outcomes", "adapted"}
        nothing = {field.name: 0 for field in fields(Totals) if field.name not in computed}
        return Totals(answered=answered, failed=dict(failed), outcomes={}, adapted={}, **nothing)


def _set_of(file: str) -> str:
    return file.rpartition("/")[2].rpartition("-")[0]


def _results(rows: pl.DataFrame, options: Sequence[str]) -> pl.DataFrame:
    """The rows of a set's items as results, one per item and in their order."""
    items = rows.partition_by("item_id", maintain_order=True)
    lines = [
        tables.encode(Result.of(_event(position, item.to_dicts(), options)))
        for position, item in enumerate(items)
    ]
    _, table = tables.to_parquet(lines, tables.RESULTS)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _event(position: int, rows: list[dict[str, Any]], options: Sequence[str]) -> Event:
    """Make the event that says how an item ended. This form does not keep how many calls it took:
    at least its options."""
    first = rows[0]
    tags = {**orjson.loads(first["tags"]), "group": first["group"], "cluster": first["cluster"]}
    item = Item(id=first["item_id"], prompt="", tags=tags)
    lost = next((row["reason"] for row in rows if row["reason"] is not None), None)
    if lost is not None:
        return Failed(position, item, lost, "", len(rows), None, None)
    drafts = [
        Draft(
            text=row["text"],
            choice=options.index(row["option"]),
            scores={"total": row["total"], "tokens": row["tokens"]},
        )
        for row in rows
    ]
    return Answered(position, item, Answer.likeliest(drafts), len(rows), None, None)
