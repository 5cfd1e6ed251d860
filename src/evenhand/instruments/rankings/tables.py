"""The tables of a run of rankings: each group's rate and ratio, the tests, and the places."""

from collections.abc import Sequence

from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Cell, Section
from evenhand.findings.ratios import (
    RARE,
    GroupResults,
    ratios_section,
    tests_section,
)
from evenhand.instruments._contract import tests_of
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.rankings.judged import (
    PLACE,
    Ranking,
    RankingCounts,
    counted,
    missing_of,
    scaled,
)
from evenhand.statistics.proportions import wilson
from evenhand.statistics.selection import levelled, uneven_p

_WORDS = InstrumentWords(__package__)
IN_PROMPT = _WORDS("in_prompt")


def sections(
    rankings: Sequence[Ranking], results: GroupResults, published: bool
) -> tuple[Section, ...]:
    """Make all tables of a run.

    Args:
        rankings: One ranking per task, read or not.
        results: Tests and impact ratios of each grouping.
        published: Whether to add the table that the original audit published.

    Returns:
        The tables. Empty if no ranking could be read.
    """
    places = counted(rankings, PLACE)
    if not places.read:
        return ()
    tables = [_ratios(index, results) for index in range(len(results.groupings))]
    tables += [_places(places), _tests(results, places)]
    if published:
        tables.append(_published(counted(rankings, results.groupings[0].attributes)))
    return tuple(tables)


def _ratios(index: int, results: GroupResults) -> Section:
    grouping = results.groupings[index]
    rate = _WORDS("rate")
    lines: list[RemarkOrText] = [Remark("ratios.note", rate=rate)] * (index == 0)
    if any(group.impact is None for group in grouping.groups):
        lines.append(_WORDS("no_impact_ratio", rare=RARE))
    return ratios_section(
        f"ratios_{index}", grouping, title=_WORDS("ratios"), people="candidates",
        selected="first", note=Remark("lines", lines=tuple(lines)) if lines else "",
    )  # fmt: skip


def _percent(part: float, total: float) -> str:
    return f"{100 * part / total:.1f}%"


def _places(counts: RankingCounts) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for group in sorted(counts.expected, key=lambda entry: int(entry[0])):
        n, times = counts.read, counts.selected[group]
        interval = wilson(times, n)
        ends = f"{100 * interval.low:.1f} to {100 * interval.high:.1f}%"
        chance = _percent(counts.expected[group], n)
        rows.append((group[0], times, _percent(times, n), ends, chance))
    note = "" if counts.alike <= 1 else _WORDS("independent")
    return _WORDS.table("places", rows, in_short=True, note=note)


def place_p(counts: RankingCounts) -> float | None:
    """Test whether first places go to the places as by an equal chance, with the answers that could
    not be read filled in as evenly as can be."""
    groups = sorted(counts.of_all)
    used = scaled(counts, [counts.selected[g] for g in groups])
    if len(groups) < 2 or not sum(used):
        return None
    expected = [counts.of_all[g] for g in groups]
    return uneven_p(levelled(used, expected, missing_of(counts)), expected)


def leading_p(counts: RankingCounts) -> float | None:
    """Test whether the groups stand in place 1 as often as by an equal chance."""
    groups = sorted(counts.of_all)
    if len(groups) < 2:
        return None
    used = scaled(counts, [counts.leading[g] for g in groups])
    return uneven_p(used, [counts.of_all[g] for g in groups]) if sum(used) else None


def _tests(results: GroupResults, places: RankingCounts) -> Section:
    tested = tests_of(results)
    p = place_p(places)
    tested += [(IN_PROMPT, p, p)] if p is not None else []
    return tests_section(
        tested, Remark("ratios.tests_note", tests=_WORDS("tests_note")), _WORDS("tests")
    )


def _published(counts: RankingCounts) -> Section:
    rows = tuple(
        (" ".join(group), n, n / counts.in_text.total())
        for group, n in sorted(counts.in_text.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return _WORDS.table("as_published", rows)
