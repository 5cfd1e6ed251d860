"""People and selections counted by group and stratum, and who is ahead of whom.

Of a run only counts are kept for the tables. The score needs every person once, as numbers in
arrays: no Python object is held per row.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from evenhand.statistics._shared import IntArray

Group = tuple[str, ...]
COUNTS = ("people", "read", "selected")


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one grouping, each a table with a row a stratum and a column a group: people, those
    whose outcome could be read, and those selected. `unknown` has the three of people whose group
    is not known."""

    groups: tuple[Group, ...]
    people: IntArray
    read: IntArray
    selected: IntArray
    unknown: tuple[int, int, int]

    @property
    def missing(self) -> IntArray:
        return self.people - self.read

    def of(self, places: Sequence[int]) -> "Counts":
        """Give the counts of these groups alone."""
        kept = list(places)
        return Counts(
            tuple(self.groups[place] for place in kept),
            self.people[:, kept],
            self.read[:, kept],
            self.selected[:, kept],
            self.unknown,
        )


def counted(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Count the outcomes of a run by stratum and group, batch by batch."""
    parts = [
        one.group_by("stratum", "group").agg(
            people=pl.len(), read=pl.col("selected").count(), selected=pl.col("selected").sum()
        )
        for one in batches
    ]
    both = pl.concat(parts).group_by("stratum", "group").agg(pl.col(COUNTS).sum())
    return both.sort("stratum", "group")


def by_grouping(table: pl.DataFrame, places: Sequence[int]) -> Counts:
    """Give the counts by some attributes, named by their place, of a table made by `counted`."""
    found = {text: _group(text, places) for text in table["group"].unique()}
    groups = tuple(sorted({group for group in found.values() if group is not None}))
    strata = {name: row for row, name in enumerate(table["stratum"].unique().sort())}
    tables = np.zeros((3, len(strata), len(groups)), np.int64)
    unknown = np.zeros(3, np.int64)
    columns = {group: column for column, group in enumerate(groups)}
    for stratum, text, *numbers in table.select("stratum", "group", *COUNTS).iter_rows():
        group = found[text]
        if group is None:
            unknown += numbers
        else:
            tables[:, strata[stratum], columns[group]] += numbers
    people, read, selected = (int(n) for n in unknown)
    return Counts(groups, tables[0], tables[1], tables[2], (people, read, selected))


def _group(text: str, places: Sequence[int]) -> Group | None:
    values = orjson.loads(text)
    chosen = tuple(values[place] for place in places)
    return None if None in chosen else chosen


@dataclass(frozen=True, slots=True)
class Order:
    """The people of a run whose group is known, in an order that hangs on nothing but their names:
    the strata by theirs, and the people of each by theirs."""

    people: pl.DataFrame  # item_id, stratum, group, selected
    stratum: IntArray
    starts: IntArray  # where each stratum begins

    @classmethod
    def of(cls, outcomes: pl.DataFrame) -> "Order":
        known = outcomes.filter("is_known")
        strata = known["stratum"].unique().sort()
        turn = dict(zip(strata, np.argsort(np.argsort(_hashes(strata))).tolist(), strict=True))
        place = known["stratum"].replace_strict(turn, return_dtype=pl.Int64).to_numpy()
        order = np.lexsort((_hashes(known["item_id"]), place))
        stratum = place[order]
        starts = np.searchsorted(stratum, np.arange(len(strata)))
        return cls(known[order], stratum, starts)


def _hashes(names: pl.Series) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.sha256(name.encode()).digest()[:8] for name in names)
    return np.frombuffer(digests, np.uint64)


def ahead(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Say of each person whether their group is ahead, less the chance of that (`beyond`).

    A group is ahead if more of it were selected than of all, among the people before. The chance is
    the share of the groups that are ahead among those of the same stratum who are still to come,
    this person with them: without bias the selected ones are drawn from these whatever was seen
    until then, so that `beyond` times any number that hangs on the outcome alone is 0 on average.
    """
    order = Order.of(outcomes)
    known = order.people["selected"].is_not_null().to_numpy()
    chosen = order.people["selected"].fill_null(0).to_numpy().astype(np.int64)
    codes = order.people["group"].rank("dense").to_numpy() - 1
    all_people, all_chosen = _before(known), _before(chosen)
    left = _left(known, order)
    beyond, named = np.zeros(len(codes)), np.zeros(len(codes))
    for code in range(int(codes.max()) + 1 if len(codes) else 0):
        own = codes == code
        is_ahead = _before(own * chosen) * all_people > _before(own & known) * all_chosen
        beyond[own] += is_ahead[own]
        named += is_ahead * _left(own & known, order)
    beyond -= named / np.maximum(left, 1)
    return order.people.select("item_id", pl.Series("beyond", beyond))


def _before(values: IntArray) -> IntArray:
    """The sum of all before each."""
    numbers = np.asarray(values, dtype=np.int64)
    return np.cumsum(numbers) - numbers


def _left(values: IntArray, order: Order) -> IntArray:
    """The sum from each to the end of its stratum."""
    before = np.append(_before(values), np.sum(values))
    ends = np.append(order.starts[1:], len(order.stratum))
    return np.asarray(before[ends[order.stratum]] - before[:-1])


def rates(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Give the share selected of each stratum, among people whose group is known."""
    known = outcomes.filter("is_known")
    return known.group_by("stratum").agg(rate=pl.col("selected").cast(pl.Float64).mean())
