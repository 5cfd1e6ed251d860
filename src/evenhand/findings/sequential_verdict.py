"""The verdict of a run that may stop early: what is decided, where it stopped, what that saved."""

from collections.abc import Iterator
from typing import Literal

from evenhand.findings.estimates import Estimate, Verdict
from evenhand.findings.measures import Measure
from evenhand.findings.remarks import Remark
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.sequential import StoppingStatus
from evenhand.statistics.sequences import BEYOND, OPEN, WITHIN

_STATES: dict[str, Literal["shown", "not shown", "not known"]] = {
    BEYOND: "shown", WITHIN: "not shown", OPEN: "not known",
}  # fmt: skip


def of_stopped(
    instrument: ScoringSpec, stopped: StoppingStatus, estimate: Estimate | None, run: str
) -> Verdict:
    """Return the verdict of a run that may stop early. Only of a measure that has a value for "no
    bias" it says whether a bias is shown; a run without an estimate to decide is a gate's."""
    if estimate is None:
        progress = Remark("until.for_gate", **_progress(instrument, stopped))
        return Verdict(state=None, says=(progress,), next=(Remark("next.gate_run", run=run),))
    measure = instrument.measure(stopped.measure)
    after = "next.without_until" if stopped.ended else "next.resume"
    return Verdict(
        state=_STATES[stopped.verdict] if measure.null is not None else None,
        says=tuple(_remarks(instrument, measure, stopped, estimate)),
        next=(Remark(after, instrument=instrument.name, run=run),),
    )


def _remarks(
    instrument: ScoringSpec, measure: Measure, stopped: StoppingStatus, estimate: Estimate
) -> Iterator[Remark]:
    bounds = estimate.bounds
    yield Remark(
        "until.estimate",
        decided=_decided(measure, stopped),
        measure=measure.label,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        missing=0 if bounds is None else bounds.missing,
        if_known=None if bounds is None else (bounds.low, bounds.high),
        signed=measure.signed,
    )
    yield _where(instrument, stopped)
    if stopped.these:
        yield Remark("until.these", clusters=stopped.of_clusters, unit=instrument.clusters)
    yield Remark("until.left_out")


def _decided(measure: Measure, stopped: StoppingStatus) -> Remark:
    """Return what is decided: how far from "no bias", or where there is no such value above or
    below."""
    if stopped.verdict == OPEN:
        return Remark("until.open", margin=stopped.margin)
    more = stopped.verdict == BEYOND
    from_none = measure.null is not None
    return Remark("until.decided", margin=stopped.margin, more=more, from_none=from_none)


def _where(instrument: ScoringSpec, stopped: StoppingStatus) -> Remark:
    """Return after how many clusters it stopped, why, and how many calls that saved."""
    progress = _progress(instrument, stopped)
    if not stopped.ended:
        return Remark("until.goes_on", **progress, looks=stopped.looks)
    if stopped.of_items == stopped.items:
        return Remark("until.all_asked", **progress)
    return Remark(
        "until.stopped",
        **progress,
        looks=stopped.looks,
        items=stopped.items,
        of_items=stopped.of_items,
        calls_saved=stopped.calls_saved,
    )


def _progress(instrument: ScoringSpec, stopped: StoppingStatus) -> dict[str, str | int]:
    return {
        "clusters": stopped.clusters,
        "of_clusters": stopped.of_clusters,
        "unit": instrument.clusters,
    }
