"""A watch asks the same questions over time and says what is shown to have changed, since when, and
what else changed there.

Each number of the watch, and the share of answers that are missing, has a detector of its own
(`statistics.change_detection`). A look that cannot be judged is left out of the numbers.
Missing answers are monitored too, so that no failure hides a change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from evenhand.core.errors import EvenhandError, UserError
from evenhand.findings.comparison import same_sample
from evenhand.findings.display import Displayable, Remark, RemarkOrText
from evenhand.findings.estimates import Coverage, Estimate
from evenhand.findings.gate import GateCheck
from evenhand.findings.measures import Measure
from evenhand.findings.report import not_run, require
from evenhand.findings.scoring import SCORED, missing_of, outcome_batches, row_values, rows_of
from evenhand.findings.totals import RunTotals
from evenhand.runs.store import RunReader
from evenhand.statistics.change_detection import Alarm, watched

Verdict = Literal["pass", "fail", "inconclusive", "error"]
MISSING = "answers that are missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringLook:
    """A look is one run of the checks: when it began, and the run of each check by its name."""

    began: str
    place: str
    runs: Mapping[str, RunReader]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredPoint:
    """What one look showed of one number, and the evidence of a change so far. `why` says why it is
    no look at this number."""

    began: str
    place: str
    estimate: Estimate | None
    evidence: float
    why: RemarkOrText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedChange:
    """A change that raised an alarm: at which look, since which one it is likeliest, and what else
    changed there, as the records have it."""

    raised: str
    since: str
    upwards: bool
    also: tuple[Remark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredNumber:
    """A number that is watched, look by look."""

    name: str
    measure: Measure | None  # None: the missing answers
    points: tuple[MonitoredPoint, ...]
    changes: tuple[DetectedChange, ...]

    @property
    def last(self) -> MonitoredPoint:
        return self.points[-1]

    @property
    def alarm(self) -> DetectedChange | None:
        """The alarm that the last look raised."""
        change = self.changes[-1] if self.changes else None
        return change if change is not None and change.raised == self.last.began else None

    def to_dict(self) -> dict[str, Any]:
        measure_name = None if self.measure is None else self.measure.name
        return {
            "name": self.name,
            "measure": measure_name,
            "points": self.points,
            "changes": self.changes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring(Displayable):
    """A watch is all looks at the checks of one file, and what they show."""

    numbers: tuple[MonitoredNumber, ...]
    looks: int
    false_alarm_every: int  # looks, on average, while nothing changes
    notes: tuple[RemarkOrText, ...] = ()

    @property
    def threshold(self) -> float:
        """The evidence at which a number raises an alarm: so the stated rate is that of all."""
        return float(self.false_alarm_every * len(self.numbers))

    @property
    def title(self) -> str:
        return "evenhand: watch"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the last look. A single look has nothing to be compared with."""
        if any(number.alarm for number in self.numbers):
            return "fail"
        if any(number.last.why for number in self.numbers):
            return "error"
        usable = min(sum(not point.why for point in number.points) for number in self.numbers)
        return "pass" if usable > 1 else "inconclusive"

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "looks": self.looks,
            "false_alarm_every": self.false_alarm_every,
            "threshold": self.threshold,
            "numbers": [number.to_dict() for number in self.numbers],
            "notes": self.notes,
        }


def monitoring(
    checks: Sequence[GateCheck], looks: Sequence[MonitoringLook], *, false_alarm_every: int = 1_000,
    notes: Sequence[RemarkOrText] = (),
) -> Monitoring:  # fmt: skip
    """Judge all looks so far, in their order. The threshold of each detector is the number of looks
    times the number of detectors, so that the stated rate applies to all of them together.

    Args:
        checks: The checks that are monitored.
        looks: All looks so far, the oldest first.
        false_alarm_every: The average number of looks until a false alarm, while nothing changes.
        notes: Remarks to add to the result.

    Raises:
        UserError: Without a look, or if a check cannot be monitored.
    """
    if not looks:
        raise UserError("There is no look yet. Take one with `evenhand monitor`.")
    for check in checks:
        _refuse_unwatched(check)
    observations = {check.name: _seen(check, looks) for check in checks}
    by_run: dict[str, str] = {}  # the missing answers of each run are watched once
    for check in checks:
        run = looks[-1].runs.get(check.name)
        by_run.setdefault(check.name if run is None else str(run.path), check.name)
    threshold = float(false_alarm_every * (len(checks) + len(by_run)))
    numbers = [
        _number(check.name, check.measure, looks, observations[check.name], threshold)
        for check in checks
    ]
    for name in by_run.values():
        label = MISSING if len(by_run) == 1 else f"{MISSING}: {name}"
        numbers.append(_number(label, None, looks, observations[name], threshold))
    return Monitoring(
        numbers=tuple(numbers),
        looks=len(looks),
        false_alarm_every=false_alarm_every,
        notes=tuple(notes),
    )


def _refuse_unwatched(check: GateCheck) -> None:
    """Our choice: means and shares are watched, whose clusters add up."""
    if check.measure.statistic.row_value is None:
        raise UserError(
            f"{check.name}: {check.measure.name} is not a mean over answers, so it cannot be "
            "monitored; name another metric of the benchmark in the file"
        )


def _seen(check: GateCheck, looks: Sequence[MonitoringLook]) -> list["_LookSums"]:
    """Read every look at a check. A check that was added later has none before."""
    first = next((look.runs[check.name] for look in looks if check.name in look.runs), None)
    return [_LookSums.of(check, look, first) for look in looks]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LookSums:
    """What one look saw of one check: a sum per cluster, nan where an answer is missing."""

    run: RunReader | None
    sums: Mapping[str, float]
    lost: Mapping[str, float]
    estimate: Estimate | None = None
    share_lost: Estimate | None = None
    why: RemarkOrText = ""

    @classmethod
    def of(cls, check: GateCheck, look: MonitoringLook, first: RunReader | None) -> "_LookSums":
        run = look.runs.get(check.name)
        try:
            if run is None or first is None:
                raise UserError("this look has no run of it")
            return cls._read(check, run, first)
        except EvenhandError as error:
            return cls(run=run, sums={}, lost={}, why=str(error))

    @classmethod
    def _read(cls, check: GateCheck, run: RunReader, first: RunReader) -> "_LookSums":
        require(check.instrument, run)
        if check.instrument.of_people:
            raise UserError("tables of people are not watched: compare them, `evenhand compare`")
        instrument = check.narrowed()
        run.verify()
        try:
            same_sample(first, run)
        except UserError:
            raise UserError("other items than at the first look: give another --out") from None
        left = not_run(run)
        if left:
            raise UserError(f"not finished: {left:,} items are not run")
        where = {} if check.group is None else {check.group[0]: check.group[1]}
        batches = list(outcome_batches(instrument, run))
        totals = RunTotals.of(instrument, batches)
        selection = rows_of(instrument, check.measure, where)
        every = pl.concat(row_values(batch, instrument) for batch in batches)
        rows = every.filter(selection)
        if rows.is_empty():
            raise UserError("no item of it is left")
        sums = _by_cluster(rows, pl.col(f"{check.measure.name}.value"), missing_of(check.measure))
        lost = pl.col("state") != SCORED
        thin = _thin(totals.coverage(), rows, missing_of(check.measure), sums)
        return cls(
            run=run,
            sums={} if thin else sums,
            lost=_by_cluster(every.with_columns(none=pl.lit(value=False)), lost, "none"),
            estimate=totals.estimate(check.measure, **where),
            share_lost=Estimate(name="missing", value=float(every.select(lost.mean()).item()),
                                n=len(every)),
            why=thin,
        )  # fmt: skip


def _thin(
    coverage: Coverage, rows: pl.DataFrame, missing: str, sums: Mapping[str, float]
) -> RemarkOrText:
    """Return why too little is known of a check to be a look at it, if that is so: of the whole
    run, or of the rows that the check is about."""
    if coverage.below_floor:
        return Remark("look.few_scored", percent=coverage.percent)
    lost = int(rows[missing].sum())
    row_coverage = Coverage(n=len(rows), scored=len(rows) - lost, by_reason={})
    if row_coverage.below_floor:
        return Remark("look.few_scored_of_it", percent=row_coverage.percent)
    if all(np.isnan(total) for total in sums.values()):
        return Remark("look.missing_everywhere")
    return ""


def _by_cluster(rows: pl.DataFrame, value: pl.Expr, missing: str) -> dict[str, float]:
    """Add up the values of each cluster; one with a missing value is not known."""
    total = pl.when(pl.col(missing).any()).then(None).otherwise(value.cast(pl.Float64).sum())
    totals = rows.group_by("cluster").agg(total.alias("total")).sort("cluster")
    return {
        cluster: float("nan") if total is None else total for cluster, total in totals.iter_rows()
    }


def _number(
    name: str, measure: Measure | None, looks: Sequence[MonitoringLook],
    observations: Sequence[_LookSums], threshold: float,
) -> MonitoredNumber:  # fmt: skip
    values = [
        observation.lost if measure is None else observation.sums for observation in observations
    ]
    judged = [index for index, sums in enumerate(values) if sums]
    clusters = sorted(set().union(*values)) if judged else []
    table = np.array(
        [[values[index].get(cluster, np.nan) for cluster in clusters] for index in judged]
    ).reshape(len(judged), -1)
    detection = watched(table, threshold) if judged else None
    evidence = dict(zip(judged, detection.evidence, strict=True)) if detection else {}
    points = [
        MonitoredPoint(began=look.began, place=look.place, evidence=evidence.get(index, 0.0),
                       estimate=observation.share_lost if measure is None else observation.estimate,
                       why="" if index in evidence else observation.why)
        for index, (look, observation) in enumerate(zip(looks, observations, strict=True))
    ]  # fmt: skip
    alarms = detection.alarms if detection else ()
    changes = [_dated(alarm, judged, looks, observations) for alarm in alarms]
    return MonitoredNumber(name=name, measure=measure, points=tuple(points), changes=tuple(changes))


def _dated(
    alarm: Alarm,
    judged: Sequence[int],
    looks: Sequence[MonitoringLook],
    observations: Sequence[_LookSums],
) -> DetectedChange:
    """Date a change, and say what else the records have otherwise there: the model that answered,
    the plan, and our own version."""
    since, before = judged[alarm.since], judged[alarm.since - 1]
    old, new = observations[before].run, observations[since].run
    assert old is not None
    assert new is not None
    also = [
        Remark("look.setting", setting=difference.setting, before=str(difference.before),
               after=str(difference.after))
        for difference in old.record.told_apart(new.record)
    ]  # fmt: skip
    for code, sides in {
        "look.endpoint": [_served(run) for run in (old, new)],
        "look.version": [run.record.versions.get("evenhand", "") for run in (old, new)],
    }.items():
        if sides[0] != sides[1]:
            also.append(Remark(code, before=sides[0], after=sides[1]))
    return DetectedChange(raised=looks[judged[alarm.look]].began, since=looks[since].began,
                          upwards=alarm.upwards, also=tuple(also))  # fmt: skip


def _served(run: RunReader) -> str:
    """Name the models that the endpoints said they were."""
    names = run.turns().select(pl.col("served_by").unique()).collect()["served_by"]
    return ", ".join(sorted(name for name in names if name))
