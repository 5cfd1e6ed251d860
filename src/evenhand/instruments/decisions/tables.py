"""The tables of stored decisions: each group's rate and ratio, and whether groups matter at all."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenhand.findings.found import Cell, Section
from evenhand.findings.ratios import (
    MATTERS,
    NOT_SHOWN,
    RARE,
    SHOWN,
    TOO_FEW,
    p_said,
    smallest_said,
)
from evenhand.instruments.decisions.counted import Counts
from evenhand.statistics._shared import FloatArray, IntArray
from evenhand.statistics.decided import alike, dealt_anew, evened, expected
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.selection import impact_ratios, p_among, ratio_interval, smallest_among
from evenhand.statistics.tables import fisher_p

NO_RATIO, LEFT_OUT = "in no ratio", "left out"
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Words:
    """What selecting is called in a table: people are selected, or score above the median."""

    title: str
    selected: str
    rate: str


SELECTING = Words("who is selected", "selected", "selection rate")
SCORING = Words("who scores above the median", "above", "scoring rate")


@dataclass(frozen=True)
class Judged:
    """The groups of one grouping that have a ratio, with all that is said of each."""

    counts: Counts
    clustered: bool
    open_rare: bool = False  # a rare group would have a ratio if the missing outcomes were known

    @cached_property
    def read(self) -> IntArray:
        return np.asarray(self.counts.read.sum(axis=0))

    @cached_property
    def people(self) -> IntArray:
        return np.asarray(self.counts.people.sum(axis=0))

    @cached_property
    def selected(self) -> IntArray:
        return np.asarray(self.counts.selected.sum(axis=0))

    @cached_property
    def missing(self) -> IntArray:
        return np.asarray(self.counts.missing.sum(axis=0))

    @cached_property
    def ratios(self) -> FloatArray:
        return impact_ratios(self.selected, self.read)

    @cached_property
    def chance(self) -> float:
        """The smallest ratio that chance alone prints, of the people whose outcome is known."""
        return self._limit(self.counts.read, self.counts.selected.sum(axis=1))

    @staticmethod
    def _limit(people: IntArray, selected: IntArray) -> float:
        return smallest_among(dealt_anew(people, selected), people.sum(axis=0))

    @cached_property
    def _chance_of_all(self) -> float:
        """The same of everybody, with nobody selected of whom it is not known."""
        return self._limit(self.counts.people, self.counts.selected.sum(axis=1))

    def ends(self, place: int | None = None) -> Ends:
        """The interval of a group's ratio, or of the smallest."""
        return self._interval(self.selected, self.read, place)

    def _interval(self, selected: IntArray, people: IntArray, place: int | None) -> Ends:
        """Decisions of a stratum that are alike count for fewer."""
        if not self.clustered:
            return ratio_interval(selected, people, place, each_alone=True)
        times = alike(self.counts.read, self.counts.selected)
        if not np.isfinite(times).all():
            return 0.0, 1.0
        fewer = np.rint(people / times), np.rint(selected / times)
        if not fewer[0].all() or not fewer[1].any():
            return 0.0, 1.0
        return ratio_interval(np.minimum(fewer[1], fewer[0]), fewer[0], place, each_alone=True)

    def if_known(self, place: int) -> Ends:
        """The least and the largest ratio of a group, over all ways in which the missing outcomes
        could have come out."""
        worst, best = self.filled(place, own=False), self.filled(place, own=True)
        return _ratio(worst, self.people, place), _ratio(best, self.people, place)

    def filled(self, place: int, *, own: bool) -> IntArray:
        """The selections with the missing outcomes of this group all selected and of the others
        none, or the other way round."""
        selected = self.selected + (0 if own else self.missing)
        selected[place] = self.selected[place] + (self.missing[place] if own else 0)
        return np.asarray(selected)

    def state(self, place: int, low: float) -> str:
        """Shown: below what chance prints however the missing outcomes came out. Not shown: the
        interval lies above what matters, however they did. Neither where they decide which groups
        are compared."""
        if self.open_rare:
            return TOO_FEW
        if self._is_below(place):
            return SHOWN
        if low >= MATTERS and self._least(place, low) >= MATTERS:
            return NOT_SHOWN
        return TOO_FEW

    def _is_below(self, place: int) -> bool:
        if not self.missing.any():
            return bool(self.ratios[place] < self.chance)
        most = self.if_known(place)[1]
        if most >= min(self.chance, self._chance_of_all):
            return False
        own = self.counts.selected.sum(axis=1) + self.counts.missing[:, place]
        return most < self._limit(self.counts.people, own)

    def _least(self, place: int, low: float) -> float:
        if not self.missing.any():
            return low
        return self._interval(self.filled(place, own=False), self.people, place)[0]


def _ratio(selected: IntArray, people: IntArray, place: int) -> float:
    return float(impact_ratios(selected, people)[place]) if selected.any() else 0.0


@dataclass(frozen=True, slots=True)
class Parted:
    """The groups of a grouping by whether they have a ratio: rare ones and those that a rule lets
    be left out have none."""

    judged: tuple[int, ...]
    rare: tuple[int, ...]
    small: tuple[int, ...]
    open_rare: bool = False  # one of the rare would not be, if the missing outcomes were known


def parted(counts: Counts, small: float | None) -> Parted:
    """Part the groups; a missing outcome is no selection, so that none makes a group less rare."""
    people = counts.people.sum(axis=0)
    share = counts.selected.sum() / max(int(people.sum()), 1)
    places = range(len(people))
    left_out = tuple(
        one for one in places if small is not None and people[one] < small * people.sum()
    )
    kept = [one for one in places if one not in left_out]
    often = tuple(one for one in kept if people[one] * share >= RARE and counts.read[:, one].any())
    if len(often) < 2 or not counts.selected[:, often].any():
        return Parted((), tuple(kept), left_out)
    rare = tuple(one for one in kept if one not in often)
    most = (counts.selected.sum() + counts.missing.sum()) / people.sum()
    return Parted(often, rare, left_out, any(people[one] * most >= RARE for one in rare))


def ratios(
    name: str, said: str, counts: Counts, words: Words, *, clustered: bool, small: float | None
) -> list[Section]:
    """Make the table of each group's rate and ratio, the highest rate first; groups without a ratio
    and people whose group is not known come last. A second one says what missing outcomes do."""
    groups, parts = counts.groups, parted(counts, small)
    rows: list[tuple[Cell, ...]] = []
    note = f"Fewer than two groups would have {RARE} {words.selected} by chance: no ratio is made."
    judged = None
    if parts.judged:
        judged = Judged(counts.of(parts.judged), clustered, parts.open_rare)
    if judged is not None:
        order = sorted(range(len(parts.judged)), key=lambda one: (-judged.ratios[one], one))
        rows += [_judged_row(judged, place) for place in order]
        note = smallest_said(float(judged.ratios.min()), judged.ends(), judged.chance)
    for places, state in ((parts.rare, TOO_FEW), (parts.small, LEFT_OUT)):
        for place in places:
            numbers = (one[:, place].sum() for one in (counts.people, counts.read, counts.selected))
            rows.append((*_counted(" ".join(groups[place]), numbers), "", "", state))
    if counts.unknown[0]:
        rows.append((*_counted("unknown", counts.unknown), "", "", NO_RATIO))
    note += _without_ratio(parts, words, small)
    main = name == "ratios_0"
    table = Section(
        name=name, title=f"{words.title}, by {said}", rows=tuple(rows), in_short=main,
        columns=("category", "people", words.selected, "rate", "ratio", "95 %", "state"),
        note=f"{note}\n{_note(words)}" if main else note,
    )  # fmt: skip
    return [table, *_if_known(name, said, judged)]


def _without_ratio(parts: Parted, words: Words, small: float | None) -> str:
    """Say why some groups have no ratio, each reason on a line of its own."""
    said = ""
    if parts.judged and parts.rare:
        said += f"\nA group with fewer than {RARE} {words.selected} by chance has no ratio."
    if parts.open_rare:
        said += "\nIt could have one if the missing outcomes were known, so nothing is shown here."
    if parts.small:
        said += f"\nLeft out of the ratios, as the rule allows: groups under {small:.0%} of all."
    return said


def _judged_row(judged: Judged, place: int) -> tuple[Cell, ...]:
    low, high = judged.ends(place)
    numbers = (one[place] for one in (judged.people, judged.read, judged.selected))
    counts = _counted(" ".join(judged.counts.groups[place]), numbers)
    ratio, ends = f"{judged.ratios[place]:.2f}", f"{low:.2f} to {high:.2f}"
    return (*counts, ratio, ends, judged.state(place, low))


def _counted(name: str, numbers: Iterable[int]) -> tuple[Cell, ...]:
    people, read, selected = map(int, numbers)
    return name, people, selected, f"{100 * selected / read:.1f}%" if read else "-"


def _if_known(name: str, said: str, judged: Judged | None) -> list[Section]:
    if judged is None or not judged.missing.any():
        return []
    rows: list[tuple[Cell, ...]] = []
    for place, group in enumerate(judged.counts.groups):
        least, most = judged.if_known(place)
        numbers = int(judged.people[place]), int(judged.missing[place])
        rows.append((" ".join(group), *numbers, f"{least:.2f} to {most:.2f}"))
    return [Section(
        name=f"if_known_{name.rpartition('_')[2]}", rows=tuple(rows),
        title=f"what the ratios could be if all outcomes were known, by {said}",
        columns=("category", "people", "no outcome", "ratio"),
    )]  # fmt: skip


def _note(words: Words) -> str:
    return (
        f"{words.rate}: of people whose outcome is known; ratio: the impact ratio, over the "
        "highest rate; 95 %: of the true ratio, the best group chosen anew in each draw. shown: "
        "chance alone seldom gets that low, however the missing outcomes came out; not shown: the "
        f"interval lies above {MATTERS:g}."
    )


def uneven(counts: Counts) -> float | None:
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
    drawn = dealt_anew(kept.people, by_stratum)[:, some]
    return p_among(filled.sum(axis=0)[some], by_chance[some], drawn)


def by_threshold(
    name: str, said: str, counts: Counts, threshold: float, small: float | None
) -> Section | None:
    """Make the table of a rule that has a threshold and names a significance test."""
    parts = parted(counts, small)
    if not parts.judged:
        return None
    judged = Judged(counts.of(parts.judged), clustered=False)
    best = int(judged.ratios.argmax())
    places = [place for place in range(len(parts.judged)) if place != best]
    tested = [_fisher(judged, place, best) for place in places]
    is_open = len(counts.people) > 1  # people of a cluster are not decided on independently
    rows = tuple(
        (" ".join(judged.counts.groups[place]), f"{judged.ratios[place]:.2f}",
         _is_below(judged.if_known(place), threshold),
         *(("open", "open") if is_open else (p_said(p), p_said(adjusted))))
        for place, p, adjusted in zip(places, tested, holm(tested), strict=True)
    )  # fmt: skip
    return Section(
        name=name, title=f"the rule's threshold and a test, by {said}", rows=rows, in_short=True,
        columns=("category", "ratio", f"below {threshold:g}", "p", "after Holm"),
        note=f"Against {' '.join(judged.counts.groups[best])}, the highest rate, by Fisher's exact "
        "test, with the missing outcomes filled in so that the two are as alike as can be. It "
        "takes that group for one that was named beforehand; the states above do not. below: open "
        "where the missing outcomes decide it; p: open with clusters, which this test ignores.",
    )  # fmt: skip


def _fisher(judged: Judged, place: int, best: int) -> float:
    """Fisher's p of a group against the best, its own missing outcomes selected and those of the
    best not; 1 where that turns them round."""
    filled, people = judged.filled(place, own=True), judged.people
    if filled[place] * people[best] >= filled[best] * people[place]:
        return 1.0
    return fisher_p([[filled[one], people[one] - filled[one]] for one in (place, best)])


def _is_below(ends: Ends, threshold: float) -> str:
    if ends[1] < threshold:
        return "yes"
    return "no" if ends[0] >= threshold else "open"
