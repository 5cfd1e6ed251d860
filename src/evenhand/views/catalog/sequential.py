"""The words of runs that may stop early."""

from collections.abc import Callable, Mapping

from evenhand.findings.estimates import Bounds, Estimate, how_sure
from evenhand.views.catalog.plurals import counted


def _estimate(
    *,
    decided: str,
    measure: str,
    value: float | None,
    low: float | None,
    high: float | None,
    missing: int,
    if_known: tuple[float | None, float | None] | list[float | None] | None,
    signed: bool,
) -> str:
    def written(number: float) -> str:
        return f"{number:+.2f}" if signed else f"{number:.2f}"

    bounds = None
    if if_known is not None:
        bounds = Bounds(missing=missing, low=if_known[0], high=if_known[1])
    estimate = Estimate(name="", value=value, low=low, high=high, bounds=bounds)
    number = "" if value is None else f", {written(value)}"
    return f"{decided}: {measure}{number}{how_sure(estimate, written)}"


def _decided(*, margin: float, more: bool, from_none: bool) -> str:
    how = "more" if more else "less"
    return f"{margin:g} or {how}{' from no bias' if from_none else ''} is shown"


def _goes_on(*, clusters: int, of_clusters: int, unit: str, looks: int) -> str:
    progress = f"{clusters:,} of {of_clusters:,} {unit}"
    return f"{progress} were asked and looked at so far ({counted(looks, 'look')}): it goes on"


def _stopped(
    *,
    clusters: int,
    of_clusters: int,
    unit: str,
    looks: int,
    items: int,
    of_items: int,
    calls_saved: int,
) -> str:
    left = of_items - items
    saved = f", which saved about {calls_saved:,} calls" if calls_saved else ""
    return (
        f"stopped after {clusters:,} of {of_clusters:,} {unit} ({counted(looks, 'look')}), as that "
        f"decided it: {left:,} of {of_items:,} items ({left / of_items:.0%}) were not asked{saved}"
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "until.for_gate": "asked for a gate, whose checks decide when it stops: {clusters:,} of "
    "{of_clusters:,} {unit} so far",
    "until.estimate": _estimate,
    "until.these": "this is of exactly these {clusters:,} {unit}; of others like them nothing is "
    "claimed",
    "until.left_out": "intervals hold at every look; what has none, such as groups, is left out",
    "until.open": "not decided at a margin of {margin:g}",
    "until.decided": _decided,
    "until.goes_on": _goes_on,
    "until.all_asked": "all of {of_clusters:,} {unit} were asked: no call was saved",
    "until.stopped": _stopped,
    "until.at_any_time": "at whatever look, after {clusters:,} of {of_clusters:,} {unit}: about "
    "{calls_saved:,} calls less than all",
}
