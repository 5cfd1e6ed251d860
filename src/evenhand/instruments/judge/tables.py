"""The tables of a judge's audit beside its checks."""

from collections.abc import Iterable, Sequence

from evenhand.findings.estimates import NO_SPREAD, Cell, Estimate, Section
from evenhand.instruments.judge.changes import Changes
from evenhand.instruments.judge.effects import Effect
from evenhand.instruments.judge.evidence import Evidence, Omnibus
from evenhand.instruments.judge.figures import Figures
from evenhand.instruments.judge.paper import PaperFigures
from evenhand.metrics.malibu import NO_LABEL
from evenhand.statistics.margins import EQUIVALENT

_COLUMNS = ("label", "shift", "95 %", "p", "bases", "shown to be")
_VALUES = {"win": "win rate", "gap": "score in pairs"}


def sections(seen: Evidence) -> tuple[Section, ...]:
    """All tables; the short page shows the first."""
    tables = [
        _identities(seen),
        *_discussion(seen.discussion),
        _means(seen.figures),
        _differences(seen.figures),
        _exploratory(seen.exploratory),
        _pairs(seen),
        _repeats(seen),
        *_paper(seen.paper),
    ]
    return tuple(table for table in tables if table.rows)


def _identities(seen: Evidence) -> Section:
    reasons = [
        f"{e.label}: {e.undefined}" for e in seen.primary if e.estimate is None and e.undefined
    ]
    return Section(
        name="identities",
        title="identities against no label, mean of all marks (p after Holm)",
        columns=_COLUMNS,
        rows=tuple(map(effect_row, seen.primary)),
        note="\n".join([*reasons, _any_label(seen.omnibus)]),
        in_short=True,
    )


def _discussion(found: Changes | None) -> list[Section]:
    """What the judges of a panel hold after their discussion against what they said alone."""
    if found is None:
        return []
    overall = {
        "mean mark": found.marks,
        "share of texts with another mark": found.marks_moved,
        "first slot's win rate": found.first_slot,
        "share of pairs with another verdict": found.verdicts_turned,
    }
    return [
        Section(
            name="discussion",
            title="what the discussion changes: after it minus alone",
            columns=("", "change", "95 %", "n", "bases"),
            rows=tuple((name, *estimate_row(one)) for name, one in overall.items() if one.n),
            note=_missing(overall.values()),
            in_short=True,
        ),
        Section(
            name="discussion_labels",
            title="what it changes of a label's effect (p after Holm, marks and pairs apart)",
            columns=_COLUMNS,
            rows=tuple(map(effect_row, (*found.labels, *found.in_pairs))),
        ),
    ]


def estimate_row(one: Estimate) -> tuple[Cell, ...]:
    """A number, its interval (without spread what so many bases still allow), n and bases."""
    if one.value is None:
        return (None, one.undefined or "", one.n, one.clusters)
    return (f"{one.value:+.3f}", range_of(one.low, one.high), one.n, one.clusters)


def range_of(low: float | None, high: float | None) -> str:
    """Both ends of an interval; nothing where there is none."""
    return "" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _missing(estimates: Iterable[Estimate]) -> str:
    """What the numbers would be at most and at least, were the missing judgements known."""
    counted = [one.bounds for one in estimates if one.bounds is not None]
    if not counted:
        return ""
    most = max(bounds.missing for bounds in counted)
    return f"up to {most} judgements are missing; bounds with them: report.json"


def wide(found: Figures) -> tuple[list[str], dict[str, list[str]]]:
    """The metrics, and for each label its means, a cell for each of them."""
    cells: dict[str, list[str]] = {}
    for one in found.means:
        cells.setdefault(one.label, []).append(_mean(one.mean))
    return list(dict.fromkeys(one.metric for one in found.means)), cells


def _mean(one: Estimate) -> str:
    if one.value is None:
        return "-"
    if one.low is None or one.high is None or one.undefined:
        return f"{one.value:.2f}"
    # Symmetric but where it is cut at an end of the scale; report.json has both ends.
    return f"{one.value:.2f} ± {max(one.high - one.value, one.value - one.low):.2f}"


def _means(found: Figures) -> Section:
    """The paper's Figure 9 with intervals."""
    metrics, cells = wide(found)
    return Section(
        name="means",
        title="mean marks by label and metric, ± half of the 95 % interval over bases",
        columns=("label", *metrics),
        rows=tuple((label, *means) for label, means in cells.items()),
        note=_missing(one.mean for one in found.means),
    )


def _differences(found: Figures) -> Section:
    """The paper's Figure 4 with intervals, on the same texts under both labels."""
    rows = [(f"{one.label} – {one.other}", *estimate_row(one.difference)) for one in found.gaps]
    return Section(
        name="differences",
        title="mean marks, label minus label, on the same texts",
        columns=("labels", "difference", "95 %", "marks", "bases"),
        rows=tuple(rows),
        note=_missing(one.difference for one in found.gaps),
    )


def _any_label(omnibus: Omnibus) -> str:
    test = omnibus.test
    if test is None:
        return f"any label at all (Friedman): undefined, {omnibus.undefined}"
    return (
        f"any label at all (Friedman): χ² = {test.chi2:.1f}, df = {test.df}, "
        f"p {_p(test.p_value)}, W = {test.kendalls_w:.3f}, {test.blocks} bases"
    )


def _exploratory(effects: Sequence[Effect]) -> Section:
    """The comparisons that were found to differ, the largest first."""
    differing = [e for e in effects if e.detected]
    return Section(
        name="exploratory",
        title=f"{len(differing)} of {len(effects)} further comparisons differ from 0 "
        "(p after Benjamini-Hochberg)",
        columns=_COLUMNS,
        rows=tuple(map(effect_row, differing)),
    )


def effect_row(e: Effect) -> tuple[Cell, ...]:
    if e.estimate is None:
        return (_name(e), None, "", "", e.bases, e.verdict)
    return (_name(e), f"{e.estimate:+.3f}", _range(e), _p(e.p_adjusted), e.bases, _shown(e))


def _name(e: Effect) -> str:
    between = "" if e.against == NO_LABEL else f" – {e.against}"
    value = "" if e.value == "combined" else f", {_VALUES.get(e.value, e.value)}"
    return f"{e.label}{between}{value}"


def _range(e: Effect) -> str:
    return "no spread" if e.undefined == NO_SPREAD else range_of(e.low, e.high) or "no spread"


def _shown(e: Effect) -> str:
    if e.verdict != EQUIVALENT:
        return e.verdict
    return "there, but small" if e.detected else "within margin"


def _pairs(seen: Evidence) -> Section:
    pairs, rows = seen.pairs, []
    if pairs.consistency is not None:
        share = pairs.consistency
        ends = f"{share.low:.1%} to {share.high:.1%}"
        rows.append(("same verdict in both orders", f"{share.estimate:.1%}", ends))
    if pairs.first_slot is not None:
        slot = pairs.first_slot
        ends = "no spread" if slot.no_spread else f"{slot.low:.1%} to {slot.high:.1%}"
        rows.append(("first slot wins, of decided verdicts", f"{slot.estimate:.1%}", ends))
    if pairs.all.asked:
        rows.append(("pairs with both verdicts", f"{pairs.all.n} of {pairs.all.asked}", ""))
    return Section(
        name="pairs",
        title="pairs in both orders",
        columns=("", "share", "95 %"),
        rows=tuple(rows),
        note=pairs.all.undefined or "",
    )


def _repeats(seen: Evidence) -> Section:
    rows = [
        (name, f"{one.identical:.0%}", one.questions, one.deviation)
        for name, one in seen.repeats.items()
        if one is not None
    ]
    return Section(
        name="repeats",
        title="the same question asked again",
        columns=("", "answered alike", "questions", "deviation"),
        rows=tuple(rows),
    )


def _paper(paper: PaperFigures) -> list[Section]:
    """The paper's own analysis, for comparison: rows counted as independent."""
    said = "as the paper prints it"
    tests = [
        (one.family, one.metric, one.test.chi2, one.test.df, _p(one.test.p_value),
         one.test.cramers_v)
        for one in paper.tests
    ]  # fmt: skip
    # A pair a row: ten labels side by side have no room on a terminal.
    gaps = [
        (f"{column} – {row}", f"{round(cell, 2) or 0.0:+.2f}")
        for row, cells in zip(paper.means, paper.differences(), strict=True)
        for column, cell in zip(paper.means, cells, strict=True)
        if column < row
    ]
    wins = [
        (label, f"{one.estimate:.1%}", f"{one.low:.1%} to {one.high:.1%}", one.n)
        for label, one in paper.wins.items()
    ]
    return [
        Section(
            name="paper_chi_square",
            title=f"{said}: chi-square",
            columns=("family", "metric", "χ²", "df", "p", "V"),
            rows=tuple(tests),
        ),
        Section(
            name="paper_differences",
            title=f"{said}: differences of mean marks",
            columns=("labels", "difference"),
            rows=tuple(gaps),
        ),
        Section(
            name="paper_win_rates",
            title=f"{said}: win rates",
            columns=("label", "rate", "95 %", "decided"),
            rows=tuple(wins),
        ),
    ]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
