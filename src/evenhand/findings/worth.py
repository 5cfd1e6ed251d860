"""This module says whether a method is worth its calls. The rules are fixed here, before any run is
looked at.

A method is worth it if it lowers the instrument's harm below that of every reference (the fairness
prompt, and a vote with as many calls), each with p ≤ 0.05 after Holm over all methods and
references, and if its utility is shown to have kept within the margin. If it does not, either it
is not worth it, or the comparison was too small to tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from evenhand.findings.comparison import Comparison
from evenhand.findings.found import Change
from evenhand.findings.measures import Measure
from evenhand.findings.rules import (
    ALPHA,
    direction,
    in_unit,
    red_line,
    seen,
    smallest_shown,
    unadjusted,
)
from evenhand.findings.scored import Scored


class Kind(StrEnum):
    NOT_WORTH_IT = "not worth it"
    UNDERPOWERED = "underpowered"
    UTILITY_NOT_MEASURED = "utility not measured"  # less harm, but nobody knows at what price
    WORTH_IT = "worth it"


WORST_FIRST = tuple(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The verdict on one method, and why."""

    kind: Kind
    why: str
    smallest_shown: float | None  # the smallest change of harm that would have been seen


def worth(instrument: Scored, against: Mapping[str, Change], utility: Change | None) -> Worth:
    """The verdict. `against` is the change of harm from each reference, by its name in words, with
    Holm; `utility` is the change of utility from the plain prompt, None where none is measured."""
    harm = harm_of(instrument)
    sizes = [size for c in against.values() if (size := smallest_shown(c, harm)) is not None]
    kind, why = _by_harm(instrument, against)
    if utility is None:
        kind = Kind.UTILITY_NOT_MEASURED if kind is Kind.WORTH_IT else kind
        why = f"{why}; utility is not measured"
    else:
        line = red_line(utility, _utility_of(instrument))
        if line.state == "crossed":
            kind, why = Kind.NOT_WORTH_IT, line.says
        elif line.state == "open" and kind is Kind.WORTH_IT:
            kind, why = Kind.UNDERPOWERED, f"{why}, but {line.says}"
    return Worth(kind=kind, why=why, smallest_shown=max(sizes, default=None))


def _by_harm(instrument: Scored, against: Mapping[str, Change]) -> tuple[Kind, str]:
    harm = harm_of(instrument)
    unbeaten = {name: c for name, c in against.items() if direction(c, harm) != "better"}
    if not unbeaten:
        return Kind.WORTH_IT, f"beats {' and '.join(against)}"
    why = f"does not beat {' or '.join(unbeaten)}"
    too_small = _too_small(unbeaten, harm, in_unit(instrument.matters, harm))
    if too_small and not any(shown_worse(change, harm) for change in unbeaten.values()):
        return Kind.UNDERPOWERED, f"{why}, but {too_small}"
    return Kind.NOT_WORTH_IT, why


def harm_of(instrument: Scored) -> Measure:
    assert instrument.harm is not None
    return instrument.measure(instrument.harm)


def _utility_of(instrument: Scored) -> Measure:
    assert instrument.utility is not None
    return instrument.measure(instrument.utility)


def shown_worse(change: Change, measure: Measure) -> bool:
    """Say whether a change is for the worse before any adjustment: for a red flag one too many is
    better than one too few."""
    return direction(unadjusted(change), measure) == "worse"


def _too_small(unbeaten: Mapping[str, Change], harm: Measure, matters: float) -> str | None:
    """Why the comparison says nothing about a change that matters; None if it does."""
    shown = [smallest_shown(change, harm) for change in unbeaten.values()]
    if None in shown:
        return "there are too few items to compare"
    widest = max(size for size in shown if size is not None)
    return f"could only have shown {widest:.2f}" if widest > matters else None


def shown_measures(instrument: Scored) -> tuple[Measure, ...]:
    """The measures that a frontier shows: primary ones, guardrails, and those that it judges by."""
    named = {instrument.harm, instrument.utility, instrument.prevented}
    return tuple(m for m in instrument.measures if m.role != "secondary" or m.name in named)


def regressions(compared: Comparison) -> tuple[str, ...]:
    """List what is shown to be worse than with the plain prompt, in words. A measure whose best
    value lies between its ends (a bias score) is left to `compare`."""
    lines = []
    for measure in shown_measures(compared.instrument):
        change = compared[measure.name]
        if measure.null is None and shown_worse(change, measure):
            wrong = "fell" if measure.better == "higher" else "rose"
            lines.append(f"{measure.label} {wrong}: {seen(change, measure)}")
    for name, moved in compared.flips.items():
        if moved.broken > moved.fixed and moved.p is not None and moved.p <= ALPHA:
            label = compared.instrument.measure(name).label
            lines.append(f"{label}: broke {moved.broken}, fixed {moved.fixed}")
    return tuple(lines)
