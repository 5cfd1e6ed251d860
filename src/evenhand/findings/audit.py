"""A check is one question that an audit asks of a judge, a scorer, a harm policy or a reward model,
with its answer; an audit is all of them, and what follows from them.

An audit is an instrument: each of its measures with a bound (`Measure.allowed`) is a check, and
`audit_of` makes the audit of the report of its run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import polars as pl

from evenhand.core.conclusions import Outcome, check_result
from evenhand.core.errors import UserError
from evenhand.findings.cost import Money
from evenhand.findings.display import Displayable, named
from evenhand.findings.estimates import (
    NO_SPREAD,
    Bounds,
    Cell,
    Coverage,
    Estimate,
    IntervalBounds,
    Section,
)
from evenhand.findings.measures import AuditBound, Measure
from evenhand.findings.report import Report
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.verdicts import look_at_failures
from evenhand.statistics.clusters import Interval

# fail: shown to be outside of what the margin allows. inconclusive: neither that nor the opposite
# is shown. measured: a number for which no margin was set.
State = Literal["pass", "fail", "inconclusive", "not_measured", "measured"]
Overall = Literal["pass", "fail", "inconclusive"]
OPEN: tuple[State, ...] = ("inconclusive", "not_measured")
_COLUMNS = {"name": pl.String, "state": pl.String, "required": pl.Boolean, "value": pl.Float64,
            "low": pl.Float64, "high": pl.Float64, "margin": pl.Float64, "n": pl.Int64,
            "clusters": pl.Int64, "undefined": pl.String, "unit": pl.String,
            "says": pl.String}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """The answer to one question of an audit. Without a value it says why; where every cluster gave
    the same value the interval is missing, and `undefined` is "no_spread"."""

    name: str
    state: State
    says: str  # in one line
    label: str = ""  # the question in a few words; the name serves where there is none
    required: bool = False  # whether the audit passes only if this is shown to be good
    unit: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None  # how far from 0 the value may be
    bar: str = ""  # what the value must be, in words, if other than a distance from 0
    n: int = 0  # what it counts: bases, judgements, pairs
    clusters: int = 0
    undefined: str | None = None
    of_tests: bool = False  # low and high invert the tests that decide, at their own levels
    details: Mapping[str, Cell] = field(default_factory=dict)  # further numbers, by name

    @property
    def title(self) -> str:
        return self.label or self.name.replace("_", " ")

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


def ends(interval: Interval) -> dict[str, Any]:
    """An interval as fields of a `AuditCheck`: value, low, high, clusters and undefined."""
    has_spread = not interval.no_spread
    return {
        "value": interval.estimate,
        "low": interval.low if has_spread else None,
        "high": interval.high if has_spread else None,
        "clusters": interval.clusters,
        "undefined": None if has_spread else NO_SPREAD,
    }


def not_measured(name: str, why: str, *, label: str = "", required: bool = False) -> AuditCheck:
    """Return a check that could not be made.

    Args:
        name: The identifier of the check.
        why: The reason, as the report shows it.
        label: The name shown to users.
        required: Whether the audit needs the check to pass.
    """
    return AuditCheck(name=name, label=label, state="not_measured", required=required, says=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Estimate):
    """An estimate whose statistic decides by a test of its own whether the bound holds, as where
    several labels are one question."""

    outcome: Outcome | None = None  # None: a number of which nothing is asked
    says: str = ""
    details: Mapping[str, Cell] = field(default_factory=dict)  # further numbers, by name
    unit: str = ""
    of_tests: bool = False  # low and high invert these tests, at their own levels


class HasState(Protocol):
    """A thing with a state decides an audit, whether it was just made or read from a
    certificate."""

    @property
    def state(self) -> State: ...
    @property
    def required(self) -> bool: ...


def overall(checks: Iterable[HasState]) -> Overall:
    """Give the state of the whole: one failed check is enough to fail, and a required one that is
    missing shows nothing."""
    results = list(checks)
    if any(check.state == "fail" for check in results):
        return "fail"
    missing = not results or any(check.required and check.state in OPEN for check in results)
    return "inconclusive" if missing else "pass"


# -- checks of the measures of an instrument -------------------------------------------------------


def outcome_of(estimate: Estimate, allowed: AuditBound) -> Outcome:
    """Say whether a value that the bound does not allow is detected, ruled out, or neither.

    The 95% CI decides, moved by what the missing answers could change: an answer that is lost
    shows nothing.

    Args:
        estimate: The number, with its interval and the bounds of its missing answers.
        allowed: The values that it may have.
    """
    interval = _with_missing(estimate, allowed)
    if interval is None:
        return Outcome.NOT_MEASURED if estimate.value is None else Outcome.INCONCLUSIVE
    low, high = interval
    if low > allowed.at_most or high < allowed.at_least or high <= allowed.above:
        return Outcome.DETECTED
    inside = low >= allowed.at_least and low > allowed.above and high <= allowed.at_most
    return Outcome.RULED_OUT if inside else Outcome.INCONCLUSIVE


def _with_missing(estimate: Estimate, allowed: AuditBound) -> tuple[float, float] | None:
    """Return all values that the data allow: the interval, and on both sides what the missing
    answers could change. None without such ends."""
    if isinstance(estimate.bounds, IntervalBounds):
        return estimate.bounds.interval
    value, low, high = estimate.value, estimate.low, estimate.high
    if allowed.exact and estimate.undefined == NO_SPREAD and low is None:
        low = high = value
    lost = estimate.bounds or Bounds(missing=0, low=value, high=value)
    ends = (value, low, high, lost.low, lost.high)
    if any(end is None for end in ends):
        return None
    value, low, high, lowest, highest = (float(end) for end in ends if end is not None)
    return low + min(0.0, lowest - value), high + max(0.0, highest - value)


def check_of(measure: Measure, estimate: Estimate, outcome: Outcome | None = None) -> AuditCheck:
    """Hold the estimate of a measure to the bound of the measure. The interval of the check is the
    one that decides: with what the missing answers could change.

    Args:
        measure: A measure with a bound.
        estimate: Its number.
        outcome: What the check shows, where more than this number decides it.
    """
    assert measure.allowed is not None
    decided = estimate if isinstance(estimate, Decided) else None
    if outcome is None:
        outcome = decided.outcome if decided else outcome_of(estimate, measure.allowed)
    missing = outcome is Outcome.NOT_MEASURED
    says = decided.says if decided else ""
    moved = _with_missing(estimate, measure.allowed) if estimate.bounds and not decided else None
    low, high = moved or (estimate.low, estimate.high)
    return AuditCheck(
        name=measure.name,
        label=measure.label,
        state=state_of(outcome),
        says=says or (estimate.undefined or "" if missing else ""),
        required=measure.allowed.required and not (missing and measure.allowed.if_any),
        unit=decided.unit if decided else measure.unit,
        details=decided.details if decided else {},
        value=estimate.value,
        low=low,
        high=high,
        bar=_in_words(measure.allowed),
        n=estimate.n,
        clusters=estimate.clusters,
        undefined=estimate.undefined,
        of_tests=decided is not None and decided.of_tests,
    )


def state_of(outcome: Outcome | None) -> State:
    """Return what a check of this outcome is called; without one, nothing is asked of it."""
    if outcome is None:
        return "measured"
    result = check_result(outcome)
    return "not_measured" if result == "error" else result


def _in_words(allowed: AuditBound) -> str:
    if allowed.at_least == -allowed.at_most and math.isfinite(allowed.at_most):
        return f"within ±{allowed.at_most:g}"
    sides = (("above", allowed.above), ("at least", allowed.at_least), ("at most", allowed.at_most))
    return " and ".join(f"{word} {value:g}" for word, value in sides if math.isfinite(value))


def _worst_of(
    measure: Measure, overall: Estimate, column: str, groups: Mapping[str, Sequence[Estimate]]
) -> AuditCheck:
    """Hold the measure to its bound in every group: one that is outside of it fails the check, and
    all must be inside to pass. The numbers are those of the worst group.

    Args:
        measure: A measure with a bound over groups.
        overall: Its number over all rows.
        column: The column of the groups.
        groups: The numbers of each group.
    """
    allowed = measure.allowed
    assert allowed is not None
    estimates = {
        value: estimate
        for value, each in groups.items()
        for estimate in each
        if estimate.name == measure.name and outcome_of(estimate, allowed) != Outcome.NOT_MEASURED
    }
    outcomes = {value: outcome_of(estimate, allowed) for value, estimate in estimates.items()}
    failed = [value for value, outcome in outcomes.items() if outcome is Outcome.DETECTED]
    unsure = [value for value, outcome in outcomes.items() if outcome is Outcome.INCONCLUSIVE]
    outcome = Outcome.DETECTED if failed else Outcome.INCONCLUSIVE if unsure else Outcome.RULED_OUT
    worst = max(
        failed or estimates, key=lambda value: _outside(estimates[value], allowed), default=""
    )
    why = overall.undefined
    if overall.value is not None:
        why = f"no {column.replace('_', ' ')} has a number of its own"
    absent = Estimate(name=measure.name, value=None, undefined=why)
    label = f"{measure.label}, by {column.replace('_', ' ')}"
    return replace(
        check_of(measure, estimates.get(worst, absent), outcome if estimates else None),
        name=f"{measure.name}:{column}",
        label=f"{label}: {worst}" if worst else label,
        details={
            "worst": worst,
            "groups": len(estimates),
            "failed": ", ".join(failed),
            "inconclusive": ", ".join(unsure),
        },
    )


def _outside(estimate: Estimate, allowed: AuditBound) -> float:
    """Return how far outside of a bound a number may be, its missing answers at their worst."""
    least = most = estimate.value
    if estimate.bounds is not None:
        least, most = estimate.bounds.low, estimate.bounds.high
    if least is None or most is None:
        return math.inf
    return max(most - allowed.at_most, allowed.at_least - least, allowed.above - least)


def checks_of(
    measures: Sequence[Measure],
    estimates: Iterable[Estimate],
    groups: Mapping[str, Mapping[str, Sequence[Estimate]]] | None = None,
) -> tuple[AuditCheck, ...]:
    """Hold every measure that has a bound to it.

    Args:
        measures: The measures of the audit.
        estimates: Their numbers over all rows.
        groups: Column, value and the numbers there, for bounds that each group is held to.
    """
    by_name = {estimate.name: estimate for estimate in estimates}
    checks: list[AuditCheck] = []
    for measure in measures:
        if measure.allowed is None:
            continue
        if measure.allowed.over:
            checks += [
                _worst_of(measure, by_name[measure.name], column, (groups or {}).get(column, {}))
                for column in measure.allowed.over
            ]
        else:
            checks.append(check_of(measure, by_name[measure.name]))
    return tuple(checks)


def is_audit(instrument: ScoringSpec) -> bool:
    """Say whether an instrument audits something: one of its measures has a bound."""
    return any(measure.allowed is not None for measure in instrument.measures)


def _unread(report: Report) -> bool:
    """Say whether answers are missing that somebody was asked for."""
    return report.coverage.below_floor and bool(report.failed_by_reason)


def audit_of(report: Report) -> "Audit":
    """Make the audit of the report of its run."""
    instrument = report.instrument
    checks = checks_of(instrument.measures, report.estimates, report.groups)
    if not checks:
        raise UserError(
            f"{instrument.name} is not an audit: none of its metrics has a threshold. Use "
            "`evenhand report`."
        )
    state = overall(checks)
    names = {check.name for check in checks}
    return Audit(
        kind=instrument.name,
        title=instrument.audited(report),
        facts=(),
        checks=checks,
        state="inconclusive" if state == "pass" and report.not_run else state,
        next=tuple(map(str, look_at_failures(report))) if _unread(report) else (),
        coverage=report.coverage,
        notes=report.notes,
        estimates=tuple(e for e in report.estimates if e.name not in names),
        sections=report.sections,
        money=None if report.money.cost is None else report.money,
        more={
            "run": report.side.run,
            "method": report.side.method,
            "source": report.source,
            "coverage": report.coverage,
            "not_run": report.not_run,
            "groups": report.groups,
            instrument.clusters: report.clusters,
            **report.more,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Displayable):
    """An audit says what was found of one judge, scorer or reward model.

    `state` is None where the audit asks no yes-or-no question, such as that of a scorer: nothing
    found is not "safe to trust". `more` are the numbers that only this kind of audit has; they
    appear in its JSON next to the checks.
    """

    kind: str  # "judge", "scorer", "reward model"
    title: str  # who was audited
    facts: tuple[str, ...]  # what it rests on: how much was asked, how much could be scored
    checks: tuple[AuditCheck, ...]
    state: Overall | None
    says: tuple[str, ...] = ()  # the answer in words, the most important first
    next: tuple[str, ...] = ()  # commands
    coverage: Coverage | None = None  # how much could be scored, and why the rest could not
    notes: tuple[str, ...] = ()  # what a reader must know in addition to the checks
    estimates: tuple[Estimate, ...] = ()  # numbers that nothing is asked of
    sections: tuple[Section, ...] = ()
    money: Money | None = None  # what it cost; None where nobody was paid
    more: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> AuditCheck:
        """The check of this name."""
        return named(self.checks, name, "check")

    def section(self, name: str) -> Section | None:
        """The table of this name, if there is one."""
        return next((section for section in self.sections if section.name == name), None)

    def frame(self) -> pl.DataFrame:
        """Give one row per check."""
        rows = [[getattr(check, name) for name in _COLUMNS] for check in self.checks]
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data, for JSON."""
        return {
            "audit": self.kind,
            "title": self.title,
            "state": self.state,
            "says": self.says,
            "next": self.next,
            "checks": self.checks,
            "estimates": self.estimates,
            "notes": self.notes,
            **({"money": self.money} if self.money else {}),
            **self.more,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Audits(Displayable):
    """Audits of one kind stand side by side here, with what only shows between them."""

    audits: tuple[Audit, ...]
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """Give one row per check, with the title of its audit."""
        each = [
            audit.frame().select(pl.lit(audit.title).alias("title"), pl.all())
            for audit in self.audits
        ]
        return pl.concat(each)

    def to_dict(self) -> dict[str, Any]:
        return {"audits": [audit.to_dict() for audit in self.audits], "notes": self.notes}
