"""This is what rankings and stored decisions say alike of their groups: each group's rate against
that of all others, the state of every row, and the verdict that follows from the rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Bounds, Cell, Estimate, Section, VerdictState
from evenhand.statistics.selection import ALPHA, FamilyOfTests, GroupContrast, Selections

# Our choice of what is too small to matter, for "ruled_out" alone: a ratio from 0.8 to its inverse.
# No ratio is called bad for being outside. US guidelines of 1978 begin to look at a ratio there.
MATTERS = 0.8
# Our choice, as for Pearson's chi-square (Cochran 1954): a group with fewer selections to expect
# has no impact ratio. One person who was selected would be the best group.
RARE = 5
MOST_GROUPS = 50  # our choice: more cannot be told apart in a table
SHOWN, NOT_SHOWN, INCONCLUSIVE = "detected", "ruled out", "inconclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """One group of a table: its counts, and what its test says where it has one."""

    name: str
    people: int
    selected: int
    read: int
    impact: float | None = None
    selections: Selections | None = None
    contrast: GroupContrast | None = None
    untested: str = ""  # why it has no test: left out, or not known who it is
    missing: int = 0

    @property
    def rate(self) -> str:
        return f"{100 * self.selected / self.read:.1f}%" if self.read else "-"

    @property
    def state(self) -> str:
        return self.untested if self.contrast is None else state_of(self.contrast)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingResult:
    """All groups of one grouping, and the test of whether they differ at all."""

    attributes: tuple[str, ...]
    groups: tuple[GroupResult, ...]
    p: float | None = None  # chi-square; None where it is not tested
    p_adjusted: float | None = None

    @classmethod
    def of(
        cls,
        attributes: Sequence[str],
        groups: Sequence[GroupResult],
        p: float | None,
        family: FamilyOfTests,
    ) -> "GroupingResult":
        """Combine the tests of one grouping. The groups differ if the chi-square test or any
        contrast is significant, so the adjusted p-value is the smallest of all.

        Args:
            attributes: The protected attributes that form the groups.
            groups: The result of each group.
            p: The p-value of the chi-square test; None without a test.
            family: The tests to adjust for.
        """
        adjusted = None
        if p is not None:
            rows = [group.contrast.p for group in groups if group.contrast is not None]
            adjusted = min([family.adjusted(p), *rows])
        return cls(attributes=tuple(attributes), groups=tuple(groups), p=p, p_adjusted=adjusted)

    @property
    def title(self) -> str:
        return " × ".join(self.attributes)

    @property
    def shown(self) -> bool:
        return self.p_adjusted is not None and self.p_adjusted <= ALPHA

    @property
    def tested(self) -> tuple[GroupResult, ...]:
        return tuple(group for group in self.groups if group.contrast is not None)

    def behind(self) -> list[GroupResult]:
        """The groups that are shown to be selected less often than the others."""
        return [
            group for group in self._shown() if group.contrast and group.contrast.difference < 0
        ]

    def ahead(self) -> list[GroupResult]:
        return [
            group for group in self._shown() if group.contrast and group.contrast.difference > 0
        ]

    def _shown(self) -> list[GroupResult]:
        return [group for group in self.tested if group.state == SHOWN]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResults:
    """What one audit says of all its groupings, the crossed one first."""

    groupings: tuple[GroupingResult, ...]

    @property
    def state(self) -> VerdictState:
        """The verdict: shown where any row or test is; not shown only where every interval of every
        table lies within what is too small to matter."""
        rows = [group.state for grouping in self.groupings for group in grouping.tested]
        if SHOWN in rows or any(grouping.shown for grouping in self.groupings):
            return "detected"
        return "ruled_out" if rows and set(rows) == {NOT_SHOWN} else "inconclusive"

    def first_shown(self) -> GroupingResult | None:
        """The table that says most plainly what is shown: a single attribute before a crossing."""
        rows = [grouping for grouping in self.groupings if grouping.behind() or grouping.ahead()]
        return min(rows or [grouping for grouping in self.groupings if grouping.shown],
                   key=lambda grouping: len(grouping.attributes), default=None)  # fmt: skip

    def contrasts(self) -> list[tuple[str, GroupingResult, GroupResult]]:
        """The groups that a comparison looks at, each with the name of its measure. Of two groups
        the second says the same as the first, with the sign turned."""
        return [
            (measure_name(grouping.attributes, group.name), grouping, group)
            for grouping in self.groupings
            for group in (grouping.tested[:1] if len(grouping.tested) == 2 else grouping.tested)
        ]

    def estimate(self, name: str) -> Estimate | None:
        """Give the estimate of a measure by the exact test that the tables print."""
        matched = next((group for key, _, group in self.contrasts() if key == name), None)
        if matched is None or matched.contrast is None or matched.selections is None:
            return None
        contrast, both = matched.contrast, matched.selections
        ends = [each.difference(each.selected) for each in (both.for_more, both.for_less)]
        lost = sum(group.missing for group in self._grouping_of(name).tested)
        return Estimate(
            name=name,
            value=contrast.difference,
            low=contrast.difference_low,
            high=contrast.difference_high,
            n=sum(group.read for group in self._grouping_of(name).tested),
            clusters=sum(group.read for group in self._grouping_of(name).tested),
            p=contrast.p,
            bounds=Bounds(missing=lost, low=min(ends), high=max(ends)) if lost else None,
        )

    def _grouping_of(self, name: str) -> GroupingResult:
        return next(grouping for key, grouping, _ in self.contrasts() if key == name)


def measure_name(attributes: Sequence[str], group: str) -> str:
    """Name the measure of a group, such as "sex=woman" or "sex × race=woman A"."""
    return f"{' × '.join(attributes)}={group}"


def state_of(contrast: GroupContrast) -> str:
    if contrast.shown:
        return SHOWN
    within = contrast.ratio_low >= MATTERS and contrast.ratio_high <= 1 / MATTERS
    return NOT_SHOWN if within else INCONCLUSIVE


def ratio_said(value: float, *, apart: bool = False) -> str:
    """Write a ratio to two digits; `apart` from 1, to as many as tell it from 1."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "∞"
    digits = 2
    while apart and digits < 6 and float(f"{value:.{digits}f}") == 1:
        digits += 1
    return f"{value:.{digits}f}"


def interval_said(contrast: GroupContrast) -> str:
    """Write the ends so that they hold 1 on paper exactly where they do."""
    ends = contrast.ratio_low, contrast.ratio_high
    return " to ".join(ratio_said(end, apart=contrast.shown) for end in ends)


def ratios_section(
    name: str,
    result: GroupingResult,
    *,
    title: str,
    people: str,
    selected: str,
    note: RemarkOrText = "",
) -> Section:
    """Make the table of one grouping: the highest rate first, groups without a test last.

    Args:
        name: The identifier of the section.
        result: The grouping with its groups.
        title: The beginning of the title; the grouping is added.
        people: The header of the column with the number of people.
        selected: The header of the column with the number of people selected.
        note: A remark below the table.
    """
    ordered = sorted(result.groups, key=lambda group: (
        group.contrast is None, -group.selected / max(group.read, 1), group.name))  # fmt: skip
    return Section(
        name=name, title=f"{title}, by {result.title}", in_short=True, note=note,
        columns=("category", people, selected, "rate", "impact ratio", "vs others", "95% CI", "p",
                 "detectable", "state"),
        rows=tuple(_row(group) for group in ordered),
    )  # fmt: skip


def _row(group: GroupResult) -> tuple[Cell, ...]:
    counts = group.name, group.people, group.selected, group.rate
    impact = "" if group.impact is None else f"{group.impact:.2f}"
    if group.contrast is None:
        return (*counts, impact, "", "", "", "", group.state)
    least = group.contrast.detectable
    return (
        *counts, impact, ratio_said(group.contrast.ratio), interval_said(group.contrast),
        p_said(group.contrast.p), "-" if least is None else f"{least:.2f}", group.state,
    )  # fmt: skip


def tests_section(
    tests: Sequence[tuple[str, float, float]], note: RemarkOrText, title: str
) -> Section:
    """Make the table of one test per grouping.

    Args:
        tests: The name, the p-value and the adjusted p-value of each test.
        note: A remark below the table.
        title: The title of the section.
    """
    rows = tuple(
        (name, p_said(p), p_said(adjusted), SHOWN if adjusted <= ALPHA else INCONCLUSIVE)
        for name, p, adjusted in tests
    )
    return Section(
        name="tests", title=title, columns=("", "p", "adjusted p", "state"), rows=rows,
        in_short=True, note=note,
    )  # fmt: skip


def p_said(p: float) -> str:
    """Write a p-value so that it stands on its side of 0.05; below what draws can tell it is a
    bound."""
    if p < 0.0005:
        return "< 0.0005"
    text = f"{p:.3f}"
    return f"{p:.4f}" if (float(text) <= ALPHA) != (p <= ALPHA) else text


def says(results: GroupResults, *, selected: str, missing: int) -> list[Remark]:
    """Return what the tables and tests show.

    Args:
        results: The results of all groupings.
        selected: The word for a selection in the text, such as "selected" or "first".
        missing: The number of missing outcomes.
    """
    state, most = results.state, results.first_shown()
    if state == "detected" and most is not None:
        p = p_said(most.p_adjusted or 1.0)
        return _shown_groups(most, selected, missing) or [
            Remark("ratios.differ", grouping=most.title, p=p, missing=missing)
        ]
    if state == "ruled_out":
        return [Remark("ratios.alike", missing=missing)]
    open_ = [group.name for grouping in results.groupings for group in grouping.tested
             if group.state == INCONCLUSIVE]  # fmt: skip
    return [
        Remark("ratios.none_shown", selected=selected),
        Remark("ratios.open", groups=tuple(dict.fromkeys(open_))),
    ]


def _shown_groups(result: GroupingResult, selected: str, missing: int) -> list[Remark]:
    """Return a remark for each group that is shown; of two groups the one that is behind."""
    behind, ahead = result.behind(), result.ahead()
    if len(result.tested) == 2 and behind:
        ahead = []
    remarks = []
    for groups, often in ((behind, "less"), (ahead, "more")):
        for group in groups:
            assert group.contrast is not None
            read = sum(other.read for other in result.tested) - group.read
            chosen = sum(other.selected for other in result.tested) - group.selected
            remarks.append(
                Remark(
                    "ratios.group",
                    group=group.name,
                    selected=selected,
                    often=often,
                    rate=group.rate,
                    others=f"{100 * chosen / read:.1f}%" if read else "-",
                    ratio=ratio_said(group.contrast.ratio),
                    interval=interval_said(group.contrast),
                    missing=missing,
                )
            )
    return remarks
