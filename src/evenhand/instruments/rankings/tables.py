"""The tables of a run of rankings: each group's rate and ratio, the tests, and the places."""

import math
from collections.abc import Sequence

import numpy as np

from evenhand.findings.found import Cell, Section
from evenhand.instruments.rankings.counted import (
    PLACE,
    Counts,
    Grouping,
    Ranking,
    counted,
    groupings,
)
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.proportions import wilson
from evenhand.statistics.selection import (
    impact_ratios,
    levelled,
    ratio_interval,
    smallest_by_chance,
    uneven_p,
)

# Our choice of what is too small to matter: only "not shown" rests on it, and no ratio is called
# bad for being below it. US guidelines of 1978 begin to look at a ratio there.
MATTERS = 0.8
SHOWN, NOT_SHOWN, TOO_FEW = "shown", "not shown", "too few to tell"
IN_PROMPT = "place in the prompt"
_COLUMNS = ("category", "candidates", "first", "rate", "ratio", "95 %", "state")
_NOTE = (
    "rate: ranked first of all its candidates; ratio: the impact ratio, over the highest rate; "
    "95 %: of the true ratio, the best group chosen anew in each draw. shown: chance alone seldom "
    "gets that low, however the answers that could not be read came out; not shown: the interval "
    f"lies above {MATTERS:g}. No law's threshold is applied."
)


def sections(found: Sequence[Ranking], published: bool) -> tuple[Section, ...]:
    """Make all tables of a run."""
    people = groupings(found[0])
    by = {grouping: counted(found, grouping) for grouping in (*people, PLACE)}
    if not by[PLACE].read:
        return ()
    several = [grouping for grouping in people if len(by[grouping].expected) > 1]
    ratios = [_ratios(f"ratios_{place}", one, by[one]) for place, one in enumerate(several)]
    made = [*ratios, _places(by[PLACE]), _tests(by)]
    if published:
        made.append(_published(by[people[0]]))
    return tuple(made)


def _scaled(counts: Counts, numbers: Sequence[float]) -> list[int]:
    """As many first places as there are independent ones."""
    return [round(n / max(counts.alike, 1.0)) for n in numbers]


def _ratios(name: str, grouping: Grouping, counts: Counts) -> Section:
    """Make the table of each group's rate and ratio, the highest rate first."""
    groups = sorted(counts.expected)
    candidates = [counts.candidates[g] for g in groups]
    selected = [counts.selected[g] for g in groups]
    expected = [counts.expected[g] for g in groups]
    ratios = impact_ratios(selected, candidates)
    used = _scaled(counts, selected)
    n, missing = sum(used), round(counts.missing / max(counts.alike, 1.0))
    chance = smallest_by_chance(max(n, 1), expected, candidates) if n else 0.0
    best = int(np.argmax(ratios))
    alike = impact_ratios(levelled(used, expected, missing), candidates) if n else ratios
    chance_of_all = smallest_by_chance(n + missing, expected, candidates) if missing else chance
    apart = list(used)
    apart[best] += missing  # the worst for "not shown": all unread ones went to the best group
    rows: list[tuple[Cell, ...]] = []
    for place in sorted(range(len(groups)), key=lambda one: (-ratios[one], groups[one])):
        low, high = ratio_interval(used, candidates, place) if n else (0.0, 1.0)
        state = TOO_FEW
        if ratios[place] < chance and alike[place] < chance_of_all:
            state = SHOWN
        elif low >= MATTERS:
            least = ratio_interval(apart, candidates, place)[0] if missing else low
            state = NOT_SHOWN if least >= MATTERS else TOO_FEW
        rate = f"{100 * selected[place] / candidates[place]:.1f}%"
        rows.append((
            " ".join(groups[place]), candidates[place], selected[place], rate,
            f"{ratios[place]:.2f}", f"{low:.2f} to {high:.2f}", state,
        ))  # fmt: skip
    title = f"who is ranked first, by {_said(grouping)}"
    low, high = ratio_interval(used, candidates) if n else (0.0, 1.0)
    note = (
        f"The smallest ratio is {ratios.min():.2f} ({low:.2f} to {high:.2f}); chance alone gets "
        f"below {chance:.2f} in one audit of 20 of this size."
    )
    main = name == "ratios_0"
    note = f"{note}\n{_NOTE}" if main else note
    return Section(name=name, title=title, columns=_COLUMNS, rows=tuple(rows), note=note,
                   in_short=main)  # fmt: skip


def _said(grouping: Grouping) -> str:
    return " × ".join(grouping) or IN_PROMPT


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


def _places(counts: Counts) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for group in sorted(counts.expected, key=lambda place: int(place[0])):
        n, times = counts.read, counts.selected[group]
        found = wilson(times, n)
        ends = f"{100 * found.low:.1f} to {100 * found.high:.1f} %"
        chance = _percent(counts.expected[group], n)
        rows.append((group[0], times, _percent(times, n), ends, chance))
    return Section(
        name="places", title="which place in the prompt is ranked first", rows=tuple(rows),
        columns=("place", "ranked first", "share", "95 %", "by chance"), in_short=True,
        note="" if counts.alike <= 1 else "The intervals take all rankings for independent.",
    )  # fmt: skip


def uneven(counts: Counts) -> float | None:
    """Test whether first places go to the groups as by an equal chance, with the answers that could
    not be read filled in as evenly as can be."""
    groups = sorted(counts.of_all)
    used = _scaled(counts, [counts.selected[g] for g in groups])
    if len(groups) < 2 or not sum(used):
        return None
    expected = [counts.of_all[g] for g in groups]
    missing = math.ceil(counts.missing / max(counts.alike, 1.0))
    return uneven_p(levelled(used, expected, missing), expected)


def leading_p(counts: Counts) -> float | None:
    """Test whether the groups stand in place 1 as often as by an equal chance."""
    groups = sorted(counts.of_all)
    if len(groups) < 2:
        return None
    used = _scaled(counts, [counts.leading[g] for g in groups])
    return uneven_p(used, [counts.of_all[g] for g in groups]) if sum(used) else None


def _tests(by: dict[Grouping, Counts]) -> Section:
    tested = {name: p for name, counts in by.items() if (p := uneven(counts)) is not None}
    after = holm(list(tested.values()))
    rows = tuple(
        (_said(name), _p(p), _p(adjusted),
         SHOWN if adjusted <= 0.05 else "not shown to differ")
        for (name, p), adjusted in zip(tested.items(), after, strict=True)
    )  # fmt: skip
    return Section(
        name="tests", title="does it matter at all?", columns=("", "p", "after Holm", "state"),
        rows=rows, in_short=True,
        note="Chi-square of the first places against an equal chance of all candidates, by 10,000 "
        "draws; answers that could not be read are filled in as evenly as can be.",
    )  # fmt: skip


def _p(p: float) -> str:
    return "< 0.0005" if p < 0.0005 else f"{p:.3f}"


def _published(counts: Counts) -> Section:
    rows = tuple(
        (" ".join(group), n, n / counts.in_text.total())
        for group, n in sorted(counts.in_text.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return Section(
        name="as_published", title="as performance_ranking.csv has it",
        columns=("group", "top", "selection rate"), rows=rows,
        note="First is who is found first in the text: a name that the model misspelt or wrote "
        "with an apostrophe or an accent is passed over for the next.",
    )  # fmt: skip
