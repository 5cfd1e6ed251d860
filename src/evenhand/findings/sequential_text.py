"""What a run that may stop early showed, in words: what is decided, where it stopped, what that
saved."""

from collections.abc import Iterator
from typing import Literal

from evenhand.findings.estimates import Estimate, Verdict, how_sure
from evenhand.findings.measures import Measure
from evenhand.findings.scoring import Scored
from evenhand.findings.sequential import Stopped
from evenhand.statistics.sequences import BEYOND, OPEN, WITHIN

_STATES: dict[str, Literal["shown", "not shown", "not known"]] = {
    BEYOND: "shown", WITHIN: "not shown", OPEN: "not known",
}  # fmt: skip


def of_stopped(
    instrument: Scored, stopped: Stopped, estimate: Estimate | None, run: str
) -> Verdict:
    """Give the verdict of a run that may stop early. Only of a measure that has a value for "no
    bias" it says whether a bias is shown; a run without an estimate to decide is a gate's."""
    if estimate is None:
        progress = f"{stopped.clusters:,} of {stopped.of_clusters:,} {instrument.clusters}"
        return Verdict(
            state=None,
            says=(f"asked for a gate, whose checks decide when it stops: {progress} so far",),
            next=(f"evenhand gate FILE --baseline BASELINE --run {run}    (judges it)",),
        )
    measure = instrument.measure(stopped.measure)
    return Verdict(
        state=_STATES[stopped.verdict] if measure.null is not None else None,
        says=tuple(_says(instrument, measure, stopped, estimate)),
        next=(_next(instrument, stopped, run),),
    )


def _says(
    instrument: Scored, measure: Measure, stopped: Stopped, estimate: Estimate
) -> Iterator[str]:
    value = "" if estimate.value is None else f", {_written(estimate.value, measure)}"
    sure = how_sure(estimate, lambda number: _written(number, measure))
    yield f"{decided(measure, stopped)}: {measure.label}{value}{sure}"
    yield where(instrument, stopped)
    if stopped.these:
        yield (
            f"this is of exactly these {stopped.of_clusters:,} {instrument.clusters}; of others "
            "like them nothing is claimed"
        )
    yield "intervals hold at every look; what has none, such as groups, is left out"


def decided(measure: Measure, stopped: Stopped) -> str:
    """Say what is decided: how far from "no bias", or where there is no such value above or
    below."""
    margin = f"{stopped.margin:g}"
    if stopped.verdict == OPEN:
        return f"not decided at a margin of {margin}"
    if measure.null is None:
        return f"{margin} or {'more' if stopped.verdict == BEYOND else 'less'} is shown"
    from_none = f"{margin} or {'more' if stopped.verdict == BEYOND else 'less'} from no bias"
    return f"{from_none} is shown"


def where(instrument: Scored, stopped: Stopped) -> str:
    """Say after how many clusters it stopped, why, and how many calls that saved."""
    progress = f"{stopped.clusters:,} of {stopped.of_clusters:,} {instrument.clusters}"
    looks = f"{stopped.looks} look{'s' * (stopped.looks != 1)}"
    if not stopped.ended:
        return f"{progress} were asked and looked at so far ({looks}): it goes on"
    left = stopped.of_items - stopped.items
    if not left:
        return f"all of {stopped.of_clusters:,} {instrument.clusters} were asked: no call was saved"
    share = left / stopped.of_items
    saved = f", which saved about {stopped.calls_saved:,} calls" if stopped.calls_saved else ""
    return (
        f"stopped after {progress} ({looks}), as that decided it: {left:,} of {stopped.of_items:,} "
        f"items ({share:.0%}) were not asked{saved}"
    )


def _written(number: float, measure: Measure) -> str:
    return f"{number:+.2f}" if measure.signed else f"{number:.2f}"


def _next(instrument: Scored, stopped: Stopped, run: str) -> str:
    command = f"evenhand measure {instrument.name}"
    if not stopped.ended:
        return f"{command} --out {run}    (with the same options: it goes on)"
    return f"{command} --out {run}-all    (without --until: groups, tables, comparisons)"
