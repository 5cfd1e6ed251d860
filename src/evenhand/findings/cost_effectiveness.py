"""This module says whether a method is worth its calls. The rules are fixed here, before any run is
looked at.

A method is worth it if it lowers the instrument's harm below that of every reference (the fairness
prompt, and a vote with as many calls), each with p ≤ 0.05 after Holm over all methods and
references, if its utility is shown to have kept within the margin, and if no guardrail against the
plain prompt is crossed. It is not worth it if that is shown: it does more harm than a reference, a
benefit that matters is excluded against one however the missing answers came out, or its utility
fell. Else nobody can tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import (
    ALPHA,
    benefit_excluded,
    direction,
    got_worse,
    guardrail,
    in_unit,
    smallest_shown,
    too_few,
)
from evenhand.findings.display import Remark, RemarkOrText
from evenhand.findings.estimates import Change, GuardrailTest
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import ScoringSpec


class CostVerdict(StrEnum):
    NOT_WORTH_IT = "not worth it"
    CANNOT_TELL = "cannot tell"
    UTILITY_NOT_MEASURED = "utility not measured"  # less harm, but nobody knows at what price
    WORTH_IT = "worth it"


WORST_FIRST = tuple(CostVerdict)
Against = Mapping[str, Change] | Mapping[RemarkOrText, Change]  # by what a reference is called


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The verdict on one method, and why."""

    kind: CostVerdict
    why: Remark
    smallest_shown: float | None  # the smallest change of harm that would have been seen


def worth(
    instrument: ScoringSpec,
    against: Against,
    utility: Change | None,
    *,
    family: int,
    guardrails: Sequence[GuardrailTest] = (),
) -> Worth:
    """Decide whether a mitigation method is worth its calls.

    Args:
        instrument: The benchmark.
        against: The change of harm from each reference, by the name of the reference.
        utility: The change of utility from the plain prompt; None where none is measured.
        family: How many changes of harm are tested at once, for Holm's correction.
        guardrails: The guardrails of the comparison with the plain prompt.
    """
    harm = harm_of(instrument)
    sizes = [
        smallest_shown(change, harm, family=family, together=len(against))
        for change in against.values()
    ]
    widest = None if None in sizes else max((s for s in sizes if s is not None), default=None)
    sensitivity = Remark("worth.no_items")
    few = [change.clusters for change in against.values() if too_few(change, family)]
    if few:
        sensitivity = Remark("worth.too_few", clusters=min(few), unit=instrument.clusters,
                             family=family)  # fmt: skip
    elif widest is not None:
        sensitivity = Remark("worth.sensitivity", size=widest, family=family)
    kind, why = _by_harm(instrument, against, sensitivity)
    if utility is not None:
        line = guardrail(utility, _utility_of(instrument))
        if line.state == "violated":
            kind, why = CostVerdict.NOT_WORTH_IT, Remark("worth.utility_fell", line=line.says)
        elif line.state == "inconclusive" and kind is CostVerdict.WORTH_IT:
            kind, why = (
                CostVerdict.CANNOT_TELL,
                Remark("worth.utility_open", why=why, line=line.says),
            )
    crossed = [line.says for line in guardrails if line.state == "violated"]
    if crossed and kind is CostVerdict.WORTH_IT:
        kind, why = CostVerdict.CANNOT_TELL, Remark("worth.crosses", why=why, lines=tuple(crossed))
    if utility is None:
        kind = CostVerdict.UTILITY_NOT_MEASURED if kind is CostVerdict.WORTH_IT else kind
        why = Remark("worth.utility_not_measured", why=why)
    return Worth(kind=kind, why=why, smallest_shown=widest)


def _by_harm(
    instrument: ScoringSpec, against: Against, sensitivity: Remark
) -> tuple[CostVerdict, Remark]:
    harm = harm_of(instrument)
    unbeaten = {name: c for name, c in against.items() if direction(c, harm) != "improved"}
    if not unbeaten:
        return CostVerdict.WORTH_IT, Remark("worth.beats", references=tuple(against))
    worse = [name for name, change in unbeaten.items() if direction(change, harm) == "regressed"]
    if worse:
        return CostVerdict.NOT_WORTH_IT, Remark("worth.more_harm", references=tuple(worse))
    matters = in_unit(instrument.matters, harm)
    # One exclusion is enough for the verdict, so that all of them share the chance to err. It is
    # 2.5%, one-sided, as that of a fall in utility: 5% for the two ways to be not worth it.
    alpha = ALPHA / 2 / len(against)
    out = [name for name, c in unbeaten.items() if benefit_excluded(c, harm, matters, alpha)]
    if out:
        remark = Remark("worth.benefit_excluded", references=tuple(out), matters=matters)
        return CostVerdict.NOT_WORTH_IT, remark
    return CostVerdict.CANNOT_TELL, Remark(
        "worth.not_beaten",
        references=tuple(unbeaten),
        matters=matters,
        missing=max((c.bounds.missing for c in unbeaten.values() if c.bounds), default=0),
        harm=harm.label,
        sensitivity=sensitivity,
    )


def harm_of(instrument: ScoringSpec) -> Measure:
    assert instrument.harm is not None
    return instrument.measure(instrument.harm)


def _utility_of(instrument: ScoringSpec) -> Measure:
    assert instrument.utility is not None
    return instrument.measure(instrument.utility)


def shown_measures(instrument: ScoringSpec) -> tuple[Measure, ...]:
    """The measures that a frontier shows: primary ones, guardrails, and those that it judges by."""
    names = {instrument.harm, instrument.utility, instrument.prevented}
    return tuple(m for m in instrument.measures if m.role != "secondary" or m.name in names)


def regressions(compared: Comparison, harm: Change) -> tuple[Remark, ...]:
    """List what is shown to be worse than with the plain prompt. A measure whose best
    value lies between its ends (a bias score) is left to `compare`. `harm` is the change of harm,
    adjusted as the frontier adjusts it."""
    lines = []
    for measure in shown_measures(compared.instrument):
        change = harm if measure.name == harm.name else compared[measure.name]
        if measure.null is None and direction(change, measure) == "regressed":
            lines.append(got_worse(change, measure))
    for name, moved in compared.flips.items():
        if moved.broken > moved.fixed and moved.p is not None and moved.p <= ALPHA:
            label = compared.instrument.measure(name).label
            lines.append(
                Remark("worth.flips", measure=label, broken=moved.broken, fixed=moved.fixed)
            )
    return tuple(lines)
