"""A run that is kept, held in memory, whose answers can be turned into failures."""

from collections.abc import Collection, Iterator, Sequence
from typing import Self

import polars as pl

from evenhand.runs.store import RunReader
from evenhand.runs.store.reader import Totals

_SAID = ("text", "choice", "stopped", "drafts")  # of an item that was answered


class Lossy(RunReader):
    """Reads as the run does that it was made from, but for the items that it lost."""

    def __init__(self, run: RunReader) -> None:
        self.path, self.record = run.path, run.record
        self._run, self._results = run, run.results().collect()
        self._seconds = list(run.seconds_by_item())

    @property
    def items(self) -> list[str]:
        return self._results["item_id"].to_list()

    def without(self, lost: Collection[str]) -> Self:
        """The same run in which these items have failed."""
        gone = pl.col("item_id").is_in(list(lost))
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._results = self._results.with_columns(
            *(pl.when(~gone).then(pl.col(name)).alias(name) for name in _SAID),
            status=pl.when(gone).then(pl.lit("failed")).otherwise("status"),
            reason=pl.when(gone).then(pl.lit("timeout")).otherwise("reason"),
        )
        return made

    def results(self) -> pl.LazyFrame:
        return self._results.lazy()

    def turns(self) -> pl.LazyFrame:
        return self._run.turns()

    def totals(self) -> Totals:
        return self._run.totals()

    def result_batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield self._results.select(columns)

    def seconds_by_item(self) -> Iterator[pl.DataFrame]:
        yield from self._seconds
