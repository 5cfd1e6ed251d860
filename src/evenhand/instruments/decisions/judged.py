"""People and selections counted by group and stratum, and judged: each group against all others, by
one family of exact tests.

Of a run only counts are kept, so that the order of the people says nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import polars as pl

from evenhand.findings.ratios import (
    RARE,
    GroupingResult,
    GroupResult,
    GroupResults,
)
from evenhand.statistics._shared import IntArray
from evenhand.statistics.selection import (
    Chance,
    FamilyOfTests,
    FilledSelections,
    Grouped,
    Selections,
    dealt_anew,
    evened,
    expected,
    impact_ratios,
    p_among,
    smallest_p,
)

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

    def groups_of(self, places: Sequence[int]) -> list[Group | None]:
        """Name the group of each cell by some attributes; None where one of them is not known."""
        chosen = [tuple(cell[index] for index in places) for cell in self.cells]
        return [
            tuple(map(str, categories)) if None not in categories else None for categories in chosen
        ]

    def summed(self, table: IntArray, places: Sequence[int], groups: Sequence[Group]) -> IntArray:
        """Sum the columns of a table of cells by group.

        Args:
            table: One row per stratum, one column per cell.
            places: Indices of the attributes that define a group.
            groups: Groups to sum, in the order of the result's columns.

        Returns:
            One row per stratum, one column per group.
        """
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


# -- the verdict ----------------------------------------------------------------------------------

NO_RATIO, LEFT_OUT = "in no ratio", "left out"
_FARTHEST = 5.0  # of the logarithm of odds around which strata are summed


def judged(
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    small: float | None = None,
    draws: int | None = None,
) -> GroupResults:
    """Judge all groupings of a table that `counted` made: all attributes crossed, then each.

    Args:
        table: People, read and selected by stratum and group.
        names: The attributes.
        small: The share of all people below which a rule lets a category be left out.
        draws: Draws without bias; by default 10,000, or 2,000 with many strata.
    """
    cells = Cells.of(table)
    by = {way: cells.by(way) for way in ways(names)}
    family = FamilyOfTests(tuple(_drawn(cells, by, draws)))
    results = []
    for way, counts in by.items():
        results.append(
            GroupingResult.of(
                [names[index] for index in way],
                list(_groups(counts, family, small)),
                uneven(counts, draws),
                family,
            )
        )
    return GroupResults(groupings=tuple(results))


def ways(names: Sequence[str]) -> list[tuple[int, ...]]:
    """The groupings, each by the places of its attributes: all crossed first, then each."""
    places = range(len(names))
    return [tuple(places), *((index,) for index in places)] if len(names) > 1 else [(0,)]


def _drawn(
    cells: Cells, by: dict[tuple[int, ...], SelectionCounts], draws: int | None
) -> Iterator[np.ndarray]:
    """Give the smallest p-value of each draw. Missing outcomes are filled in three ways: nobody was
    selected, everybody, and as many as of the others; the strictest of them decides.

    People are reassigned within each stratum among those of whom the same attributes are known, so
    that every grouping keeps its number of selected people.
    """
    missing = cells.people - cells.read
    share = cells.selected.sum() / max(int(cells.read.sum()), 1)
    fills = (0.0, share, 1.0) if missing.any() else (0.0,)
    for fill in fills:
        selected = cells.selected + np.rint(fill * missing).astype(np.int64)
        permuted = dealt_anew(*_patterns(cells, selected), draws=draws)
        groupings = []
        for way, counts in by.items():
            chosen = cells.summed(selected, way, counts.groups).sum(axis=1)
            chances = [
                _chance(counts.people, chosen, column) for column in range(len(counts.groups))
            ]
            groupings.append(Grouped(
                cells.summed(permuted, way, counts.groups), chances, expected(counts.people, chosen)
            ))  # fmt: skip
        yield smallest_p(groupings)


def _patterns(cells: Cells, selected: IntArray) -> tuple[IntArray, IntArray]:
    """The people of each stratum by which of their attributes are known, and how many of them are
    selected."""
    patterns = [tuple(category is not None for category in cell) for cell in cells.cells]
    people, chosen = [], []
    for pattern in sorted(set(patterns)):
        here = np.array([cell_pattern == pattern for cell_pattern in patterns])
        people.append(cells.people * here)
        chosen.append((selected * here).sum(axis=1))
    rows, numbers = np.concatenate(people), np.concatenate(chosen)
    there = rows.any(axis=1)
    return rows[there], numbers[there]


def _chance(people: IntArray, selected: IntArray, column: int, near: float = 0.0) -> Chance:
    in_group = people[:, column]
    return Chance.dealt(in_group, people.sum(axis=1) - in_group, selected, near)


def _groups(
    counts: SelectionCounts, family: FamilyOfTests, small: float | None
) -> Iterator[GroupResult]:
    people, read, selected = (table.sum(axis=0) for table in (counts.people, counts.read,
                                                              counts.selected))  # fmt: skip
    left_out = [small is not None and size < small * people.sum() for size in people]
    impact = _impact(counts, left_out)
    for column, group in enumerate(counts.groups):
        tested = None if left_out[column] or not counts.selected.any() else _filled(counts, column)
        yield GroupResult(
            name=" ".join(group),
            people=int(people[column]),
            read=int(read[column]),
            selected=int(selected[column]),
            impact=impact.get(column),
            selections=tested,
            contrast=None if tested is None else family.contrast(tested),
            untested=LEFT_OUT if left_out[column] else NO_RATIO,
            missing=int(people[column] - read[column]),
        )
    if counts.unknown[0]:
        everybody, with_outcome, chosen = counts.unknown
        yield GroupResult(name="unknown", people=everybody, read=with_outcome, selected=chosen,
                          untested=NO_RATIO)  # fmt: skip


def _impact(counts: SelectionCounts, left_out: Sequence[bool]) -> dict[int, float]:
    """The impact ratios of the groups that have one: a rare group would be the best or the worst by
    one person."""
    people, read, selected = (table.sum(axis=0) for table in (counts.people, counts.read,
                                                              counts.selected))  # fmt: skip
    share = selected.sum() / max(int(people.sum()), 1)
    eligible = [
        column
        for column in range(len(people))
        if not left_out[column] and people[column] * share >= RARE and read[column]
    ]
    if len(eligible) < 2 or not selected[eligible].any():
        return {}
    return dict(
        zip(eligible, impact_ratios(selected[eligible], read[eligible]).tolist(), strict=True)
    )


def _filled(counts: SelectionCounts, column: int) -> Selections:
    """The selections of a group: as known, and with the missing outcomes against either claim."""
    observed = _filling(counts.read, counts.selected, column)
    if not counts.missing.any():
        return Selections(observed, observed, observed)
    in_group = np.zeros_like(counts.missing)
    in_group[:, column] = counts.missing[:, column]
    less = _filling(counts.people, counts.selected + in_group, column)
    more = _filling(counts.people, counts.selected + counts.missing - in_group, column)
    return Selections(observed, less, more)


def _filling(people: IntArray, selected: IntArray, column: int) -> FilledSelections:
    chosen = selected.sum(axis=1)
    in_group, others = int(people[:, column].sum()), int(people.sum() - people[:, column].sum())
    near = _odds(people, selected, column) if len(people) > 1 else 0.0
    return FilledSelections(
        selected=int(selected[:, column].sum()),
        total=float(chosen.sum()),
        expected=float(expected(people, chosen)[column]),
        scale=(in_group + others) / (in_group * others) if in_group and others else 0.0,
        chance=_chance(people, chosen, column, near),
    )


def _odds(people: IntArray, selected: IntArray, column: int) -> float:
    """The logarithm of Mantel and Haenszel's odds ratio (1959), with half a person in each sum."""
    n = np.maximum(people.sum(axis=1), 1)
    a, lost = selected[:, column], people[:, column] - selected[:, column]
    c = selected.sum(axis=1) - a
    d = people.sum(axis=1) - people[:, column] - c
    log_odds = np.log(((a * d / n).sum() + 0.5) / ((lost * c / n).sum() + 0.5))
    return float(np.clip(log_odds, -_FARTHEST, _FARTHEST))


def uneven(counts: SelectionCounts, draws: int | None = None) -> float | None:
    """Test whether the groups are selected alike, with the missing outcomes filled in so that they
    are as alike as can be. None with several strata and anything missing: which filling of all of
    them is the most alike is not known, and that of each need not be."""
    there = [column for column in range(len(counts.groups)) if counts.people[:, column].any()]
    present = counts.of(there)
    if len(there) < 2 or (len(present.people) > 1 and present.missing.any()):
        return None
    filled = present.selected
    if present.missing.any():
        filled = evened(present.people[0], present.selected[0], present.missing[0])[None, :]
    by_stratum = filled.sum(axis=1)
    if not by_stratum.any():
        return None
    by_chance = expected(present.people, by_stratum)
    some = by_chance > 0
    if some.sum() < 2:
        return None
    permuted = dealt_anew(present.people, by_stratum, draws=draws)[:, some]
    return p_among(filled.sum(axis=0)[some], by_chance[some], permuted)
