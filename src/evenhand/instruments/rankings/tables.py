"""The tables of a run of rankings: each group's rate and ratio, the tests, and the places."""

import math
from collections.abc import Sequence

from evenhand.findings.found import Cell, Section
from evenhand.findings.ratios import (
    MATTERS,
    NOT_SHOWN,
    RARE,
    SHOWN,
    TOO_FEW,
    smallest_said,
    tests_section,
)
from evenhand.instruments.rankings.counted import (
    PLACE,
    Counts,
    Group,
    Grouping,
    Ranking,
    counted,
    groupings,
)
from evenhand.statistics.proportions import wilson
from evenhand.statistics.selection import (
    impact_ratios,
    levelled,
    ratio_interval,
    smallest_by_chance,
    uneven_p,
)

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
    """Make the table of each group's rate and ratio, the highest rate first; rare groups last."""
    groups, rare = _judged(counts)
    candidates = [counts.candidates[g] for g in groups]
    selected = [counts.selected[g] for g in groups]
    expected = [counts.expected[g] for g in groups]
    ratios = impact_ratios(selected, candidates)
    used = _scaled(counts, selected)
    n, missing = sum(used), _missing(counts)
    chance = smallest_by_chance(n, expected, candidates) if n else 0.0
    of_all = [counts.all_candidates[g] for g in groups]
    chance_of_all = chance
    if n and missing:
        all_expected = [counts.of_all[g] for g in groups]
        chance_of_all = smallest_by_chance(n + missing, all_expected, of_all)
    rows: list[tuple[Cell, ...]] = []
    for place in sorted(range(len(groups)), key=lambda one: (-ratios[one], groups[one])):
        low, high = ratio_interval(used, candidates, place) if n else (0.0, 1.0)
        state = TOO_FEW
        if n and ratios[place] < chance and _most(used, of_all, place, missing) < chance_of_all:
            state = SHOWN
        elif low >= MATTERS and _least(used, of_all, place, missing, low) >= MATTERS:
            state = NOT_SHOWN
        rows.append((
            *_counted(counts, groups[place]), f"{ratios[place]:.2f}", f"{low:.2f} to {high:.2f}",
            state,
        ))  # fmt: skip
    rows += [(*_counted(counts, group), "", "", TOO_FEW) for group in rare]
    title = f"who is ranked first, by {_said(grouping)}"
    low, high = ratio_interval(used, candidates) if n else (0.0, 1.0)
    note = smallest_said(float(ratios.min()), (low, high), chance)
    if rare:
        note += f"\nA group with fewer than {RARE} first places by chance has no ratio."
    main = name == "ratios_0"
    note = f"{note}\n{_NOTE}" if main else note
    return Section(name=name, title=title, columns=_COLUMNS, rows=tuple(rows), note=note,
                   in_short=main)  # fmt: skip


def _judged(counts: Counts) -> tuple[list[Group], list[Group]]:
    """Part the groups that have a ratio from those too rare for one; all have one where fewer than
    two would, or where only rare ones came first."""
    groups = sorted(counts.expected)
    often = [g for g in groups if counts.of_all[g] / max(counts.alike, 1.0) >= RARE]
    if len(often) < 2 or not any(counts.selected[g] for g in often):
        return groups, []
    return often, [g for g in groups if g not in often]


def _missing(counts: Counts) -> int:
    return math.ceil(counts.missing / max(counts.alike, 1.0))


def _most(used: Sequence[int], candidates: Sequence[int], place: int, missing: int) -> float:
    """A group's ratio if all missing first places were its own."""
    filled = list(used)
    filled[place] += missing
    return float(impact_ratios(filled, candidates)[place])


def _least(
    used: Sequence[int], candidates: Sequence[int], place: int, missing: int, low: float
) -> float:
    """The lower end of a group's ratio if all missing first places were those of the other group
    that gets furthest ahead by them."""
    if not missing:
        return low
    others = [one for one in range(len(used)) if one != place]
    filled = list(used)
    filled[max(others, key=lambda one: (used[one] + missing) / candidates[one])] += missing
    return ratio_interval(filled, candidates, place)[0]


def _counted(counts: Counts, group: Group) -> tuple[Cell, ...]:
    candidates, selected = counts.candidates[group], counts.selected[group]
    return " ".join(group), candidates, selected, f"{100 * selected / candidates:.1f}%"


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
    return uneven_p(levelled(used, expected, _missing(counts)), expected)


def leading_p(counts: Counts) -> float | None:
    """Test whether the groups stand in place 1 as often as by an equal chance."""
    groups = sorted(counts.of_all)
    if len(groups) < 2:
        return None
    used = _scaled(counts, [counts.leading[g] for g in groups])
    return uneven_p(used, [counts.of_all[g] for g in groups]) if sum(used) else None


def _tests(by: dict[Grouping, Counts]) -> Section:
    tested = {name: p for name, counts in by.items() if (p := uneven(counts)) is not None}
    return tests_section(
        {_said(name): p for name, p in tested.items()},
        "Chi-square of the first places against an equal chance of all candidates, by 10,000 "
        "draws; answers that could not be read are filled in as evenly as can be.",
    )


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
