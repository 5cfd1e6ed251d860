"""The items of a run, a page at a time: what a filter leaves is kept as positions, and the rows of
one page are read from the parts that hold them. No table of the run is ever in memory."""

import secrets
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import Any, overload

import numpy as np
import polars as pl

from evenhand.core import Turn
from evenhand.core.errors import UserError
from evenhand.runs.store import RunReader
from evenhand.runs.store.reader import Totals
from evenhand.runs.store.tables import turn_of
from evenhand.views.viewer.filters import MOVES, Facets, ListQuery, Move

PAGE = 25  # our choice: as many as a person looks through
_KEPT = 4  # our choice: filters whose positions are kept, 8 bytes an item


class Ranges(Sequence[int]):
    """The positions in half-open ranges, one after the other, without a list of them."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = spans
        self._past = list(accumulate(stop - start for start, stop in spans))

    def __len__(self) -> int:
        return self._past[-1] if self._past else 0

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        span = bisect_left(self._past, index + 1)
        return self._spans[span][1] - (self._past[span] - index)


@dataclass(frozen=True, slots=True)
class ViewerRow:
    """One item of the list: its row of the results, and where two runs are compared that of the
    other run and what became of it."""

    row: dict[str, Any]
    before: dict[str, Any] | None = None
    move: Move | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A page of the list, how many items the filters leave, and how many there are."""

    rows: tuple[ViewerRow, ...]
    found: int
    totals: Totals
    moved: dict[str, int]  # move -> items of this run, where two are compared

    @property
    def pages(self) -> int:
        return max(1, -(-self.found // PAGE))


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDetail:
    """One item with its conversation, and its neighbours among what the filters leave."""

    row: ViewerRow
    turns: tuple[Turn, ...]
    turns_before: tuple[Turn, ...]
    previous: int | None
    following: int | None
    page: int  # of the list, on which it stands


class RunBrowser:
    """A run to browse, compared with another one if it is given. Safe to use from several
    threads."""

    def __init__(self, run: RunReader, against: RunReader | None = None, *, base: str = "") -> None:
        self.run = run
        self.against = against
        self.base = base  # of the addresses of its pages; "" where it is the only run
        self.facets = Facets(run)
        self._found: OrderedDict[tuple[ListQuery, int], Sequence[int]] = OrderedDict()
        self._lock = Lock()

    def listed(self, query: ListQuery) -> ListPage:
        totals = self.run.totals()
        order = self._order(query, totals.items)
        first = (query.page - 1) * PAGE
        rows = self._rows(list(order[first : first + PAGE]))
        return ListPage(rows=tuple(rows), found=len(order), totals=totals, moved=self._moved())

    def one(self, position: int, query: ListQuery) -> ItemDetail | None:
        """Give the item at a position of the plan, if the run has it."""
        rows = self._rows([position])
        if not rows:
            return None
        order = self._order(query, self.run.totals().items)
        index = _place(order, position, self.against is not None)
        other = rows[0].before
        return ItemDetail(
            row=rows[0],
            turns=_turns(self.run, position),
            turns_before=_turns(self.against, other["position"]) if self.against and other else (),
            previous=_at(order, index - 1) if index is not None else None,
            following=_at(order, index + 1) if index is not None else None,
            page=1 if index is None else index // PAGE + 1,
        )

    def _order(self, query: ListQuery, items: int) -> Sequence[int]:
        """The positions that the filters leave, in the order of the list. A run that is under way
        grows, so they are kept for as many items as it had."""
        key = (replace(query, page=1), items)
        with self._lock:
            positions = self._found.pop(key, None)
        if positions is None:
            positions = self._searched(key[0])
        with self._lock:
            self._found[key] = positions  # the latest last
            if len(self._found) > _KEPT:
                self._found.popitem(last=False)
        return positions

    def _searched(self, query: ListQuery) -> Sequence[int]:
        if query.move and self.against is None:
            raise UserError(
                "Only two runs can be filtered by change. Start `evenhand runs view` with "
                "--against RUN."
            )
        rows = query.rows()
        matching = None if rows is None else _matching(self.run, rows)
        if self.against is None:
            return Ranges(self.run.positions()) if matching is None else _ints(matching)
        pairs = self._pairs
        if matching is not None:
            pairs = pairs.filter(pl.col("position").is_in(matching.implode()))
        if query.move:
            pairs = pairs.filter(pl.col("move") == MOVES.index(query.move))
        return _ints(pairs.sort("move", "position")["position"])

    @cached_property
    def _pairs(self) -> pl.DataFrame:
        """What became of each item of this run since the other one: position, before, move.

        Ids and answers are told apart by checksums of 64 bits, so that no text is kept. Nobody
        knows their key, so nobody can write two that look the same.
        """
        assert self.against is not None
        key = secrets.randbits(64)
        after, before = _answers(self.run, key), _answers(self.against, key)
        # Our choice: an id that a run has twice stands for its first item there.
        first = before.unique("item", keep="first", maintain_order=True)
        both = after.join(first, on="item", how="left", suffix="_before")
        here, there = pl.col("answer").is_not_null(), pl.col("answer_before").is_not_null()
        move = (
            pl.when(pl.col("position_before").is_null())
            .then(MOVES.index("alone"))
            .when(there & ~here)
            .then(MOVES.index("lost"))
            .when(here & ~there)
            .then(MOVES.index("gained"))
            .when(pl.col("answer").eq_missing(pl.col("answer_before")))
            .then(MOVES.index("same"))
            .otherwise(MOVES.index("other"))
        )
        return both.select(
            "position", pl.col("position_before").alias("before"), move.cast(pl.Int8).alias("move")
        ).sort("position")

    def _moved(self) -> dict[str, int]:
        if self.against is None:
            return {}
        counted = dict(self._pairs["move"].value_counts().iter_rows())
        return {move: counted.get(number, 0) for number, move in enumerate(MOVES)}

    def _rows(self, positions: list[int]) -> list[ViewerRow]:
        """The rows at these positions, in this order."""
        rows = {row["position"]: row for row in _read(self.run, positions)}
        present = [position for position in positions if position in rows]
        if self.against is None:
            return [ViewerRow(rows[position]) for position in present]
        pairs = self._pairs.filter(pl.col("position").is_in(present))
        paired = {position: (other, MOVES[move]) for position, other, move in pairs.iter_rows()}
        others = [other for other, _ in paired.values() if other is not None]
        befores = {row["position"]: row for row in _read(self.against, others)}
        return [
            ViewerRow(rows[position], befores.get(paired[position][0]), paired[position][1])
            for position in present
            if position in paired
        ]


def _ints(positions: pl.Series) -> Sequence[int]:
    held: Any = positions.to_numpy()
    return memoryview(held)


def _read(run: RunReader, positions: list[int]) -> list[dict[str, Any]]:
    return run.results_at(positions).collect().to_dicts() if positions else []


def _turns(run: RunReader, position: int) -> tuple[Turn, ...]:
    return tuple(turn_of(row) for row in run.turns_at([position]).collect().to_dicts())


def _matching(run: RunReader, rows: pl.Expr) -> pl.Series:
    """The positions of the rows that an expression holds for."""
    columns = list(dict.fromkeys(["position", *rows.meta.root_names()]))
    return run.picked(columns, lambda part: part.filter(rows).select("position"))["position"]


def _answers(run: RunReader, key: int) -> pl.DataFrame:
    """Columns position, and checksums of the id and of the answer, null where there is none."""
    answer = pl.when(pl.col("text").is_not_null()).then(pl.col("text").hash(key)).alias("answer")
    columns = (pl.col("position"), pl.col("item_id").hash(key).alias("item"), answer)
    return run.picked(("position", "item_id", "text"), lambda part: part.select(columns))


def _place(order: Sequence[int], position: int, shuffled: bool) -> int | None:
    """Where a position stands in the order, if it does; one of two runs is not sorted."""
    if shuffled:
        matches = np.flatnonzero(np.asarray(order) == position)
        return int(matches[0]) if len(matches) else None
    index = bisect_left(order, position)
    return index if _at(order, index) == position else None


def _at(order: Sequence[int], index: int) -> int | None:
    return int(order[index]) if 0 <= index < len(order) else None
