"""The words of a comparison's verdict and notes."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.views.catalog.plurals import counted, plural

_SHOWN_OTHERWISE = {"order": "options in another order", "wording": "the question in other words"}


def _unfinished(*, items: int) -> str:
    are = plural(items, "is", "are")
    return f"{counted(items, 'item')} {are} not run yet: no conclusion before all are run."


def _other_side(*, changes: Sequence[tuple[str, float, float]]) -> str:
    lines = [f"{measure} {before:+.2f} → {after:+.2f}" for measure, before, after in changes]
    return f"As far from no bias as before, but on the other side: {'; '.join(lines)}."


def _nothing_shown(*, least: str | None) -> str:
    return f"No difference is shown, and none is excluded{f': {least}' if least else '.'}"


def _sensitivity(*, size: float, of_distance: bool, measure: str, family: int) -> str:
    what = "a change of the distance from no bias" if of_distance else "a change"
    return (
        f"this comparison could only see {what} of {size:.2f} or more of: {measure} "
        f"(4 times in 5, after correction for {family})."
    )


def _levels(*, facet: str, before: Sequence[int], after: Sequence[int]) -> str:
    levels = " → ".join(", ".join(map(str, side)) for side in (before, after))
    what = _SHOWN_OTHERWISE[facet]
    return f"After was shown {what} ({facet} {levels}): a change may be due to that."


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "comparison.unfinished": _unfinished,
    "comparison.better": lambda *, measures: f"shown better: {', '.join(measures)}",
    "comparison.worse": lambda *, measures: f"shown worse: {', '.join(measures)}",
    "comparison.red_lines": lambda *, lines: f"red lines crossed: {len(lines)}, named below",
    "comparison.other_side": _other_side,
    "comparison.same": "All {items:,} items gave the same result in both runs.",
    "comparison.excluded": "No difference is shown, and one of {matters:g} or more is excluded.",
    "comparison.nothing_shown": _nothing_shown,
    "comparison.too_few": "{clusters} {unit} are too few to show any change after correction for "
    "{family}.",
    "comparison.sensitivity": _sensitivity,
    "comparison.averaged": "Means by item over {before} runs before and {after} after.",
    "comparison.other_condition": _levels,
}
