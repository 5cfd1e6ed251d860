"""People and selections counted by group and stratum. Of a run only counts are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import polars as pl

from evenhand.statistics._shared import IntArray

Group = tuple[str, ...]
COUNTS = ("people", "read", "selected")


@dataclass(frozen=True, slots=True)
class SelectionCounts:
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

    def of(self, places: Sequence[int]) -> "SelectionCounts":
        """Give the counts of these groups alone."""
        columns = list(places)
        return SelectionCounts(
            tuple(self.groups[column] for column in columns),
            self.people[:, columns],
            self.read[:, columns],
            self.selected[:, columns],
            self.unknown,
        )


def counted(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Count the outcomes of a run by stratum and group, batch by batch."""
    parts = [
        batch.group_by("stratum", "group").agg(
            people=pl.len(), read=pl.col("selected").count(), selected=pl.col("selected").sum()
        )
        for batch in batches
    ]
    both = pl.concat(parts).group_by("stratum", "group").agg(pl.col(COUNTS).sum())
    return both.sort("stratum", "group")


@dataclass(frozen=True, slots=True)
class Cells:
    """The counts of all strata and all combinations of categories, those that are not known too."""

    strata: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...]
    people: IntArray  # a row a stratum, a column a cell
    read: IntArray
    selected: IntArray

    @classmethod
    def of(cls, table: pl.DataFrame) -> "Cells":
        """Lay out a table that `counted` made."""
        strata = {name: row for row, name in enumerate(table["stratum"].unique().sort())}
        texts = {text: column for column, text in enumerate(table["group"].unique().sort())}
        numbers = np.zeros((3, len(strata), len(texts)), np.int64)
        for stratum, text, *counts in table.select("stratum", "group", *COUNTS).iter_rows():
            numbers[:, strata[stratum], texts[text]] += counts
        cells = tuple(tuple(orjson.loads(text)) for text in texts)
        return cls(tuple(strata), cells, numbers[0], numbers[1], numbers[2])

    @classmethod
    def of_people(
        cls, group: Sequence[str | None], selected: Sequence[int | None], stratum: Sequence[str]
    ) -> "Cells":
        """Count people with one attribute, one by one."""
        names, column = np.unique(["" if label is None else f"={label}" for label in group],
                                  return_inverse=True)  # fmt: skip
        strata, row = np.unique(list(stratum), return_inverse=True)
        has_outcome = np.array([outcome is not None for outcome in selected])
        chosen = np.array([outcome == 1 for outcome in selected])
        numbers = np.zeros((3, len(strata), len(names)), np.int64)
        for table, counts in zip(
            numbers, (np.ones(len(has_outcome)), has_outcome, chosen), strict=True
        ):
            np.add.at(table, (row, column), counts.astype(np.int64))
        cells = tuple((str(name)[1:] if name else None,) for name in names)
        return cls(tuple(map(str, strata)), cells, numbers[0], numbers[1], numbers[2])

    def groups_of(self, places: Sequence[int]) -> list[Group | None]:
        """Name the group of each cell by some attributes; None where one of them is not known."""
        chosen = [tuple(cell[index] for index in places) for cell in self.cells]
        return [
            tuple(map(str, categories)) if None not in categories else None for categories in chosen
        ]

    def summed(self, table: IntArray, places: Sequence[int], groups: Sequence[Group]) -> IntArray:
        """Sum the columns of a table of cells by group."""
        cell_groups = self.groups_of(places)
        columns = [
            [index for index, label in enumerate(cell_groups) if label == group] for group in groups
        ]
        return np.stack([table[:, members].sum(axis=1) for members in columns], axis=1)

    def by(self, places: Sequence[int]) -> SelectionCounts:
        """Give the counts by some attributes, named by their place."""
        cell_groups = self.groups_of(places)
        groups = tuple(sorted({group for group in cell_groups if group is not None}))
        tables = [self.summed(table, places, groups) for table in (self.people, self.read,
                                                                   self.selected)]  # fmt: skip
        lost = [index for index, group in enumerate(cell_groups) if group is None]
        unknown = [int(table[:, lost].sum()) for table in (self.people, self.read, self.selected)]
        return SelectionCounts(
            groups, tables[0], tables[1], tables[2], (unknown[0], unknown[1], unknown[2])
        )
