"""The words of changes and of red lines."""

from collections.abc import Callable, Mapping

from evenhand.findings.estimates import NO_SPREAD
from evenhand.views.catalog.plurals import counted


def _digits(unit: str) -> int:
    return 3 if unit in ("share", "nats") else 1


def _end(number: float, digits: int) -> str:
    """Write an end of an interval with so many digits that what is not 0 does not look like 0."""
    while 1e-6 <= abs(number) < 0.5 * 10**-digits:
        digits += 1
    if 0 < abs(number) < 1e-6:
        return "above 0" if number > 0 else "below 0"
    return f"{number:+.{digits}f}"


def _undefined(*, reason: str | None) -> str:
    return f"it could not be compared ({reason})"


def _change(
    *,
    effect: float,
    low: float | None,
    high: float | None,
    undefined: str | None,
    clusters: int,
    unit: str,
    if_known: str | None,
) -> str:
    """The change that is tested with its 95% CI, or why there is none."""
    why = undefined or ""
    if undefined == NO_SPREAD:
        why = f"the same in all {clusters} clusters"
    digits = _digits(unit)
    number = f"{effect:+.{digits}f}"
    if low is None or high is None:
        return f"{number} ({why}){if_known or ''}" if why else f"{number}{if_known or ''}"
    ends = f"{_end(low, digits)} to {_end(high, digits)}"
    return f"{number} ({ends}{f'; {why}' if why else ''}){if_known or ''}"


def _loss(*, effect: float, loss: float, unit: str, if_known: str | None) -> str:
    """The change with the largest loss that is compatible with it."""
    digits = _digits(unit)
    return f"{effect:+.{digits}f}, a loss of at most {max(loss, 0.0):.{digits}f}{if_known or ''}"


def _if_known(*, missing: int, low: float | None, high: float | None, unit: str) -> str:
    many, digits = counted(missing, "missing answer"), _digits(unit)
    if low is None or high is None:
        return f"; {many} could make it anything"
    return f"; if the {many} were known: {low:+.{digits}f} to {high:+.{digits}f}"


def _worse(*, measure: str, fell: bool, change: str) -> str:
    return f"{measure} {'fell' if fell else 'rose'}: {change}"


def _missing(*, of: str, before: int, n_before: int, after: int, n: int) -> str:
    rise, share = after / n - before / n_before, after / n
    moved = "rose" if rise > 0 else "fell" if rise < 0 else "stayed the same"
    by = f" by {abs(rise):.3f}, to {share:.3f}" if rise else f" at {share:.3f}" if share else ""
    counts = f"{before:,} → {after:,} of {n:,}"
    return f"unreadable or missing answers{of and f', {of},'} {moved}{by} ({counts})"


def _by_group(*, measure: str, groups: list[str]) -> str:
    return f"{measure} got worse in: {', '.join(groups)}"


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "change": _change,
    "change.undefined": _undefined,
    "change.if_known": _if_known,
    "change.loss": _loss,
    "change.distance_from_50": "{measure} {moved}, its distance by {change}",
    "red_line.not_compared": "not compared: {reason}",
    "red_line.worse": _worse,
    "red_line.kept": "{measure} kept within {margin:g}: {change}",
    "red_line.open": "{measure} is not shown to have kept within {margin:g}: {change}",
    "red_line.by_group": _by_group,
    "red_line.missing": _missing,
    "red_line.nothing_shared": "no item was asked in both runs",
}
