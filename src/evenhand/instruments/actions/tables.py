"""The tables and the main result of actions."""

from collections.abc import Mapping, Sequence

import polars as pl

from evenhand.findings.estimates import Cell, Estimate, Section, VerdictState
from evenhand.findings.measures import Measure
from evenhand.findings.ratios import SHOWN
from evenhand.findings.report import Report
from evenhand.instruments.actions.answers import compared
from evenhand.instruments.actions.measures import ActionContrasts
from evenhand.instruments.actions.scenario import ActionOutcome
from evenhand.instruments.counterfactual.contrasts import MATTERS
from evenhand.instruments.counterfactual.measures import conclusion
from evenhand.instruments.counterfactual.tables import (
    EQUIVALENT,
    ends,
    per_100,
    state_of,
    state_of_excess,
)
from evenhand.instruments.files import InstrumentWords

_WORDS = InstrumentWords(__package__)
_BEYOND = "beyond the placebo"


def effects(measured: ActionContrasts) -> Section:
    """Make the table of every contrast, and after those of an outcome its adjusted effect."""
    rows: list[tuple[Cell, ...]] = []
    for outcome in dict.fromkeys(contrast.outcome.label for contrast in measured.signed):
        signed = [each for each in measured.signed if each.outcome.label == outcome]
        for each in signed:
            placebo = "-" if each.placebo is None else f"{100 * each.placebo:.1f}"
            contrast = f"{each.family}: {each.left} − {each.right}"
            rows.append((outcome, contrast, *_numbers(each.found, placebo), state_of(each.found)))
        excess = measured.excess.get(outcome)
        if excess is not None:
            state = state_of_excess(excess, signed)
            rows.append((outcome, _BEYOND, *_numbers(excess, "-"), state))
    return _WORDS.table("effects", rows, in_short=True, matters=100 * MATTERS)


def _numbers(estimate: Estimate, placebo: str) -> tuple[Cell, ...]:
    value = "-" if estimate.value is None else per_100(estimate.value)
    return value, ends(estimate) or "-", placebo


def groups(answers: pl.DataFrame, outcomes: Mapping[str, ActionOutcome]) -> Section:
    """Make the table of means of each outcome, by part and group."""
    keys = ("part", "family", "label")
    rows: list[tuple[Cell, ...]] = []
    people = answers.filter(pl.col("role") == "group")
    for outcome in compared(outcomes):
        value = pl.col(outcome.name)
        table = people.group_by(*keys, maintain_order=True).agg(
            value.mean().alias("mean"), value.count().alias("n")
        )
        for part, family, label, mean, n in table.iter_rows():
            own = None if mean is None else outcomes[outcome.label].own_scale(mean)
            rows.append((outcome.label, part, family, label,
                         "-" if own is None else f"{own:.4g}", n))  # fmt: skip
    return _WORDS.table("groups", rows)


def spread(report: Report, outcomes: Mapping[str, ActionOutcome]) -> Section:
    """Make the table of flip rates and ranges, over all answers and by part."""
    by_part = {"all": report.estimates, **report.groups.get("part", {})}
    rows: list[tuple[Cell, ...]] = []
    for name, outcome in outcomes.items():
        measure = "CFR" if outcome.is_yes_or_no else "MASD"
        for part, estimates in by_part.items():
            each = next(each for each in estimates if each.name == f"spread.{name}")
            interval = "-" if each.low is None else f"{each.low:.3g} to {each.high:.3g}"
            value = "-" if each.value is None else f"{each.value:.4g}"
            rows.append((name, part, measure, value, interval, each.n))
    return _WORDS.table("spread", rows)


# -- the main result in words ---------------------------------------------------------------------


def signed_in(report: Report) -> list[tuple[Measure, Estimate]]:
    """Return the signed contrasts of a report, those without a value among them: an outcome that
    no answer states is not ruled out."""
    return [(measure, report[measure.name]) for measure in report.instrument.primary()]


def state_of_actions(report: Report) -> VerdictState:
    """Give the state of the verdict: that of all signed contrasts, adjusted together. An effect
    beyond the placebo can only withhold "ruled out"."""
    signed = [estimate for _, estimate in signed_in(report)]
    excess = [each for each in report.estimates if each.name.startswith("excess.")]
    return conclusion(signed, (), excess)


def says(report: Report) -> tuple[str, ...]:
    """Say the main result: of each outcome with a detected difference the largest one, or else
    what is not ruled out."""
    signed = signed_in(report)
    measured = [(measure, each) for measure, each in signed if each.value is not None]
    if not measured:
        return ()
    beyond = _beyond(report)
    detected = [(measure, each) for measure, each in signed if state_of(each) == SHOWN]
    if detected:
        return (*_detected(detected), *beyond)
    if all(state_of(each) == EQUIVALENT for _, each in signed) and not beyond:
        return (_WORDS("same", matters=100 * MATTERS),)
    measure, widest = max(measured, key=_size)
    line = _WORDS("open", contrast=measure.label, size=per_100(widest.value or 0.0),
                  interval=_interval(widest), matters=100 * MATTERS)  # fmt: skip
    return (line, *beyond)


def _detected(detected: Sequence[tuple[Measure, Estimate]]) -> list[str]:
    by_outcome: dict[str, list[tuple[Measure, Estimate]]] = {}
    for measure, estimate in detected:
        by_outcome.setdefault(measure.label.partition(",")[0], []).append((measure, estimate))
    lines = []
    for several in by_outcome.values():
        measure, largest = max(several, key=_size)
        others = len(several) - 1
        more = _WORDS("more", count=others) if others else ""
        lines.append(
            _WORDS("detected", contrast=measure.label, size=per_100(largest.value or 0.0),
                   interval=_interval(largest), more=more)
        )  # fmt: skip
    return lines


def _size(pair: tuple[Measure, Estimate]) -> float:
    return abs(pair[1].value or 0.0)


def _beyond(report: Report) -> tuple[str, ...]:
    excess = [each for each in report.estimates if each.name.startswith("excess.")]
    names = [each.name.removeprefix("excess.") for each in excess if state_of(each) == SHOWN]
    return (_WORDS("beyond", outcomes=", ".join(names)),) if names else ()


def _interval(estimate: Estimate) -> str:
    interval = ends(estimate)
    return f" (95% CI {interval})" if interval else ""
