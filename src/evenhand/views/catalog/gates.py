"""The words of a gate's checks."""

from collections.abc import Callable, Mapping

_SIDES = {"baseline": "the baseline", "run": "this run"}


def _change(*, measure: str, change: str, early: str | None) -> str:
    return f"{measure}: {change}" + (f" ({early})" if early else "")


def _worse(*, measure: str, change: str, early: str | None) -> str:
    return f"shown to be worse: {_change(measure=measure, change=change, early=early)}"


def _unfinished(*, side: str, items: int) -> str:
    return f"{_SIDES[side]} is not finished: {items:,} items are not run"


def _coverage(*, side: str, percent: str, n: int) -> str:
    return f"{_SIDES[side]}: only {percent} of the answers could be scored, of {n:,}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "gate.lacking": "the baseline had this check and this run lacks it: put it back, or make a "
    "new baseline",
    "gate.change": _change,
    "gate.worse": _worse,
    "gate.other_side": "the bias now goes the other way, {before:+.3f} → {after:+.3f}: {change}",
    "gate.within": "shown to be no worse than by {margin:g}: {change}",
    "gate.open": "neither worse nor within {margin:g} is shown: {change}",
    "gate.unfinished": _unfinished,
    "gate.coverage": _coverage,
    "gate.too_few": "{clusters} {unit} are too few to say how many would decide",
    "gate.no_spread": "nothing says how many would decide: it has no spread, or its margin is too "
    "small",
    "gate.more_than_there_are": "it would take {clusters:,} {unit}, and there are {there_are}: ask "
    "more of each, or allow more than {margin:g}",
}
