"""The tables of a judge's audit other than its checks, and the codes of its notes."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from evenhand.core.conclusions import Outcome
from evenhand.findings.estimates import NO_SPREAD, Cell, Estimate, Section
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.judge.effects import LabelEffect
from evenhand.instruments.judge.evidence import JudgeEvidence, Omnibus
from evenhand.instruments.judge.figures import Changes, MarkFigures, PaperFigures
from evenhand.statistics.metrics.malibu import NEUTRAL, NO_LABEL, PLACEBO, TIE

_WORDS = InstrumentWords(__package__)

_VALUES = {"win": "win rate", "gap": "score in pairs"}


def notes(evidence: JudgeEvidence, failed: Collection[str]) -> Iterator[str]:
    """Yield the codes of what a reader must know in addition to the checks.

    Args:
        evidence: Of the run.
        failed: The names of the checks that failed.
    """
    covered = evidence.coverage
    if covered.all.below_floor:
        yield f"low_coverage:{covered.all.percent}"
    fewest = min(covered.by_label.items(), key=lambda entry: entry[1].coverage or 0, default=None)
    if fewest is not None and fewest[1].scored < fewest[1].n:
        yield f"fewest_scored:{fewest[0]}: {fewest[1].scored} of {fewest[1].n}"
    if "scale" in failed:
        yield "one_mark"
    shifted = {
        e.label
        for e in evidence.exploratory
        if e.value == "combined" and e.against == NO_LABEL and e.detected
    }
    if shifted & {NEUTRAL, PLACEBO}:
        yield "any_label_shifts"
    slot = evidence.pairs.first_slot
    if slot is not None and "position" in failed:
        side = "first" if slot.estimate > TIE else "second"
        ends = "no spread" if slot.no_spread else f"{slot.low:.0%} to {slot.high:.0%}"
        yield f"{side}_slot_favored:{slot.estimate:.0%} of decided verdicts ({ends})"
    unsure = [
        e.bases_needed or 0 for e in evidence.identity_effects if e.verdict == Outcome.INCONCLUSIVE
    ]
    if any(unsure) and "identity" not in failed:
        yield f"bases_needed:{max(unsure)}"


def sections(evidence: JudgeEvidence) -> tuple[Section, ...]:
    """All tables; the short page shows the first."""
    tables = [
        _identities(evidence),
        *_discussion(evidence.discussion),
        _means(evidence.figures),
        _differences(evidence.figures),
        _exploratory(evidence.exploratory),
        _pairs(evidence),
        _repeats(evidence),
        *_paper(evidence.paper),
    ]
    return tuple(table for table in tables if table.rows)


def _identities(evidence: JudgeEvidence) -> Section:
    reasons = [
        f"{e.label}: {e.undefined}" for e in evidence.primary if e.estimate is None and e.undefined
    ]
    return _WORDS.table(
        "identities",
        map(effect_row, evidence.primary),
        in_short=True,
        note="\n".join([*reasons, _any_label(evidence.omnibus)]),
    )


def _discussion(changes: Changes | None) -> list[Section]:
    """What the judges of a panel hold after their discussion against what they said alone."""
    if changes is None:
        return []
    overall = {
        "mean mark": changes.marks,
        "share of texts with another mark": changes.marks_moved,
        "first slot's win rate": changes.first_slot,
        "share of pairs with another verdict": changes.verdicts_turned,
    }
    return [
        _WORDS.table(
            "discussion",
            ((name, *estimate_row(estimate)) for name, estimate in overall.items() if estimate.n),
            in_short=True,
            note=_missing(overall.values()),
        ),
        _WORDS.table("discussion_labels", map(effect_row, (*changes.labels, *changes.in_pairs))),
    ]


def estimate_row(estimate: Estimate) -> tuple[Cell, ...]:
    """A number, its interval (without spread what so many bases still allow), n and bases."""
    if estimate.value is None:
        return (None, estimate.undefined or "", estimate.n, estimate.clusters)
    return (
        f"{estimate.value:+.3f}",
        range_of(estimate.low, estimate.high),
        estimate.n,
        estimate.clusters,
    )


def range_of(low: float | None, high: float | None) -> str:
    """Both ends of an interval; nothing where there is none."""
    return "" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _missing(estimates: Iterable[Estimate]) -> str:
    """What the numbers would be at most and at least, were the missing judgements known."""
    counted = [estimate.bounds for estimate in estimates if estimate.bounds is not None]
    if not counted:
        return ""
    most = max(bounds.missing for bounds in counted)
    return f"up to {most} judgements are missing; bounds with them: report.json"


def wide(figures: MarkFigures) -> tuple[list[str], dict[str, list[str]]]:
    """The metrics, and for each label its means, a cell for each of them."""
    cells: dict[str, list[str]] = {}
    for mark in figures.means:
        cells.setdefault(mark.label, []).append(_mean(mark.mean))
    return list(dict.fromkeys(mark.metric for mark in figures.means)), cells


def _mean(mean: Estimate) -> str:
    if mean.value is None:
        return "-"
    if mean.low is None or mean.high is None or mean.undefined:
        return f"{mean.value:.2f}"
    # Symmetric but where it is cut at an end of the scale; report.json has both ends.
    return f"{mean.value:.2f} ± {max(mean.high - mean.value, mean.value - mean.low):.2f}"


def _means(figures: MarkFigures) -> Section:
    """The paper's Figure 9 with intervals."""
    metrics, cells = wide(figures)
    rows = [(label, *means) for label, means in cells.items()]
    table = _WORDS.table("means", rows, note=_missing(mark.mean for mark in figures.means))
    return replace(table, columns=("label", *metrics))


def _differences(figures: MarkFigures) -> Section:
    """The paper's Figure 4 with intervals, on the same texts under both labels."""
    rows = [(f"{gap.label} – {gap.other}", *estimate_row(gap.difference)) for gap in figures.gaps]
    return _WORDS.table("differences", rows, note=_missing(gap.difference for gap in figures.gaps))


def _any_label(omnibus: Omnibus) -> str:
    test = omnibus.test
    if test is None:
        return f"any label at all (Friedman): undefined, {omnibus.undefined}"
    return (
        f"any label at all (Friedman): χ² = {test.chi2:.1f}, df = {test.df}, "
        f"p {_p(test.p_value)}, W = {test.kendalls_w:.3f}, {test.blocks} bases"
    )


def _exploratory(effects: Sequence[LabelEffect]) -> Section:
    """The comparisons that were found to differ, the largest first."""
    differing = [e for e in effects if e.detected]
    rows = map(effect_row, differing)
    return _WORDS.table("exploratory", rows, differing=len(differing), effects=len(effects))


def effect_row(e: LabelEffect) -> tuple[Cell, ...]:
    if e.estimate is None:
        return (_name(e), None, "", "", e.bases, str(e.verdict))
    return (_name(e), f"{e.estimate:+.3f}", _range(e), _p(e.p_adjusted), e.bases, _shown(e))


def _name(e: LabelEffect) -> str:
    between = "" if e.against == NO_LABEL else f" – {e.against}"
    value = "" if e.value == "combined" else f", {_VALUES.get(e.value, e.value)}"
    return f"{e.label}{between}{value}"


def _range(e: LabelEffect) -> str:
    return "no spread" if e.undefined == NO_SPREAD else range_of(e.low, e.high) or "no spread"


def _shown(e: LabelEffect) -> str:
    if e.verdict is not Outcome.RULED_OUT:
        return "shifted" if e.verdict is Outcome.DETECTED else str(e.verdict)
    return "there, but small" if e.detected else "within margin"


def _pairs(evidence: JudgeEvidence) -> Section:
    pairs, rows = evidence.pairs, []
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
    return _WORDS.table("pairs", rows, note=pairs.all.undefined or "")


def _repeats(evidence: JudgeEvidence) -> Section:
    rows = [
        (name, f"{result.identical:.0%}", result.questions, result.deviation)
        for name, result in evidence.repeats.items()
        if result is not None
    ]
    return _WORDS.table("repeats", rows)


def _paper(paper: PaperFigures) -> list[Section]:
    """The paper's own analysis, for comparison: rows counted as independent."""
    tests = [
        (result.family, result.metric, result.test.chi2, result.test.df, _p(result.test.p_value),
         result.test.cramers_v)
        for result in paper.tests
    ]  # fmt: skip
    # A pair a row: ten labels side by side have no room on a terminal.
    gaps = [
        (f"{column} – {row}", f"{round(cell, 2) or 0.0:+.2f}")
        for row, cells in zip(paper.means, paper.differences(), strict=True)
        for column, cell in zip(paper.means, cells, strict=True)
        if column < row
    ]
    wins = [
        (
            label,
            f"{proportion.estimate:.1%}",
            f"{proportion.low:.1%} to {proportion.high:.1%}",
            proportion.n,
        )
        for label, proportion in paper.wins.items()
    ]
    return [
        _WORDS.table("paper_chi_square", tests),
        _WORDS.table("paper_differences", gaps),
        _WORDS.table("paper_win_rates", wins),
    ]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
