"""Who was selected, judged: each group against all others, by one family of exact tests.

Everything here is a function of counts, so that the order of the people says nothing.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import orjson
import polars as pl

from evenhand.findings.ratios import (
    NOT_SHOWN,
    RARE,
    GroupingResult,
    GroupResult,
    GroupResults,
    State,
    state_of,
)
from evenhand.instruments.decisions.counted import Cells, Counts
from evenhand.statistics._shared import IntArray
from evenhand.statistics.decided import dealt_anew, evened, expected
from evenhand.statistics.selection import (
    ALPHA,
    Chance,
    Family,
    Filling,
    Grouped,
    Selections,
    impact_ratios,
    p_among,
    smallest_p,
)

NO_RATIO, LEFT_OUT = "in no ratio", "left out"
_FARTHEST = 5.0  # of the logarithm of odds around which strata are summed


def verdict_of(
    group: Sequence[str | None],
    selected: Sequence[int | None],
    stratum: Sequence[str] | None = None,
    draws: int | None = None,
) -> State:
    """Give the verdict on people: who they are, and whether each was selected (None: not known).

    Args:
        group: The category of each person; None where it is not known.
        selected: 1 or 0 for each person; None where the outcome is missing.
        stratum: What each person shares with those whom they competed with.
        draws: Draws without bias, for a quick look; by default as many as an audit takes.
    """
    cells = Cells.of_people(group, selected, [""] * len(group) if stratum is None else stratum)
    counts = cells.by((0,))
    family = Family(tuple(_drawn(cells, {(0,): counts}, draws)))
    tested = [_filled(counts, place) for place in range(len(counts.groups))]
    p = [one.p for one in tested] + [one for one in [uneven(counts, draws)] if one is not None]
    if not counts.selected.any():
        return "not known"
    if min(map(family.adjusted, p)) <= ALPHA:
        return "shown"
    small = all(state_of(family.contrast(one)) == NOT_SHOWN for one in tested)
    return "not shown" if small else "not known"


def judged_counts(people: IntArray, selected: IntArray, draws: int | None = None) -> GroupResults:
    """Judge groups of which only the numbers are known, all outcomes among them."""
    table = pl.DataFrame({
        "stratum": [""] * len(people),
        "group": [orjson.dumps([f"{place:02}"]).decode() for place in range(len(people))],
        "people": people, "read": people, "selected": selected,
    })  # fmt: skip
    return judged(table, ["group"], draws=draws)


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
    family = Family(tuple(_drawn(cells, by, draws)))
    made = []
    for way, counts in by.items():
        made.append(
            GroupingResult.of(
                [names[place] for place in way],
                list(_groups(counts, family, small)),
                uneven(counts, draws),
                family,
            )
        )
    return GroupResults(groupings=tuple(made))


def ways(names: Sequence[str]) -> list[tuple[int, ...]]:
    """The groupings, each by the places of its attributes: all crossed first, then each."""
    places = range(len(names))
    return [tuple(places), *((one,) for one in places)] if len(names) > 1 else [(0,)]


def _drawn(
    cells: Cells, by: dict[tuple[int, ...], Counts], draws: int | None
) -> Iterator[np.ndarray]:
    """Give the smallest p-value of each draw. Missing outcomes are filled in three ways: nobody was
    selected, everybody, and as many as of the others; the strictest of them decides.

    People are dealt anew within each stratum among those of whom the same attributes are known, so
    that every grouping keeps its number of selected people.
    """
    missing = cells.people - cells.read
    share = cells.selected.sum() / max(int(cells.read.sum()), 1)
    fills = (0.0, share, 1.0) if missing.any() else (0.0,)
    for fill in fills:
        selected = cells.selected + np.rint(fill * missing).astype(np.int64)
        drawn = dealt_anew(*_patterns(cells, selected), draws=draws)
        groupings = []
        for way, counts in by.items():
            chosen = cells.summed(selected, way, counts.groups).sum(axis=1)
            chances = [_chance(counts.people, chosen, place) for place in range(len(counts.groups))]
            groupings.append(Grouped(
                cells.summed(drawn, way, counts.groups), chances, expected(counts.people, chosen)
            ))  # fmt: skip
        yield smallest_p(groupings)


def _patterns(cells: Cells, selected: IntArray) -> tuple[IntArray, IntArray]:
    """The people of each stratum by which of their attributes are known, and how many of them are
    selected."""
    known = [tuple(one is not None for one in cell) for cell in cells.cells]
    people, chosen = [], []
    for pattern in sorted(set(known)):
        here = np.array([one == pattern for one in known])
        people.append(cells.people * here)
        chosen.append((selected * here).sum(axis=1))
    rows, numbers = np.concatenate(people), np.concatenate(chosen)
    there = rows.any(axis=1)
    return rows[there], numbers[there]


def _chance(people: IntArray, selected: IntArray, place: int, near: float = 0.0) -> Chance:
    own = people[:, place]
    return Chance.dealt(own, people.sum(axis=1) - own, selected, near)


def _groups(counts: Counts, family: Family, small: float | None) -> Iterator[GroupResult]:
    people, read, selected = (one.sum(axis=0) for one in (counts.people, counts.read,
                                                          counts.selected))  # fmt: skip
    left_out = [small is not None and one < small * people.sum() for one in people]
    impact = _impact(counts, left_out)
    for place, group in enumerate(counts.groups):
        tested = None if left_out[place] or not counts.selected.any() else _filled(counts, place)
        yield GroupResult(
            name=" ".join(group),
            people=int(people[place]),
            read=int(read[place]),
            selected=int(selected[place]),
            impact=impact.get(place),
            selections=tested,
            contrast=None if tested is None else family.contrast(tested),
            untested=LEFT_OUT if left_out[place] else NO_RATIO,
            missing=int(people[place] - read[place]),
        )
    if counts.unknown[0]:
        everybody, known, chosen = counts.unknown
        yield GroupResult(name="unknown", people=everybody, read=known, selected=chosen,
                          untested=NO_RATIO)  # fmt: skip


def _impact(counts: Counts, left_out: Sequence[bool]) -> dict[int, float]:
    """The impact ratios of the groups that have one: a rare group would be the best or the worst by
    one person."""
    people, read, selected = (one.sum(axis=0) for one in (counts.people, counts.read,
                                                          counts.selected))  # fmt: skip
    share = selected.sum() / max(int(people.sum()), 1)
    kept = [place for place in range(len(people))
            if not left_out[place] and people[place] * share >= RARE and read[place]]  # fmt: skip
    if len(kept) < 2 or not selected[kept].any():
        return {}
    return dict(zip(kept, impact_ratios(selected[kept], read[kept]).tolist(), strict=True))


def _filled(counts: Counts, place: int) -> Selections:
    """The selections of a group: as known, and with the missing outcomes against either claim."""
    seen = _filling(counts.read, counts.selected, place)
    if not counts.missing.any():
        return Selections(seen, seen, seen)
    own = np.zeros_like(counts.missing)
    own[:, place] = counts.missing[:, place]
    less = _filling(counts.people, counts.selected + own, place)
    more = _filling(counts.people, counts.selected + counts.missing - own, place)
    return Selections(seen, less, more)


def _filling(people: IntArray, selected: IntArray, place: int) -> Filling:
    chosen = selected.sum(axis=1)
    own, others = int(people[:, place].sum()), int(people.sum() - people[:, place].sum())
    near = _odds(people, selected, place) if len(people) > 1 else 0.0
    return Filling(
        selected=int(selected[:, place].sum()),
        total=float(chosen.sum()),
        expected=float(expected(people, chosen)[place]),
        scale=(own + others) / (own * others) if own and others else 0.0,
        chance=_chance(people, chosen, place, near),
    )


def _odds(people: IntArray, selected: IntArray, place: int) -> float:
    """The logarithm of Mantel and Haenszel's odds ratio (1959), with half a person in each sum."""
    n = np.maximum(people.sum(axis=1), 1)
    a, lost = selected[:, place], people[:, place] - selected[:, place]
    c = selected.sum(axis=1) - a
    d = people.sum(axis=1) - people[:, place] - c
    found = np.log(((a * d / n).sum() + 0.5) / ((lost * c / n).sum() + 0.5))
    return float(np.clip(found, -_FARTHEST, _FARTHEST))


def uneven(counts: Counts, draws: int | None = None) -> float | None:
    """Test whether the groups are selected alike, with the missing outcomes filled in so that they
    are as alike as can be. None with several strata and anything missing: which filling of all of
    them is the most alike is not known, and that of each need not be."""
    there = [one for one in range(len(counts.groups)) if counts.people[:, one].any()]
    kept = counts.of(there)
    if len(there) < 2 or (len(kept.people) > 1 and kept.missing.any()):
        return None
    filled = kept.selected
    if kept.missing.any():
        filled = evened(kept.people[0], kept.selected[0], kept.missing[0])[None, :]
    by_stratum = filled.sum(axis=1)
    if not by_stratum.any():
        return None
    by_chance = expected(kept.people, by_stratum)
    some = by_chance > 0
    if some.sum() < 2:
        return None
    drawn = dealt_anew(kept.people, by_stratum, draws=draws)[:, some]
    return p_among(filled.sum(axis=0)[some], by_chance[some], drawn)
