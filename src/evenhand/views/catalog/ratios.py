"""The words of rates and ratios of groups."""

from collections.abc import Callable, Mapping, Sequence

from evenhand.findings.ratios import MATTERS
from evenhand.views.catalog.plurals import plural

_NOTE = (
    "impact ratio: the rate over the highest rate, a description. vs others: the group's rate over "
    "the rate of all others, with an exact interval. p and the 95% CI are adjusted for all groups "
    "and tests of this page: shown means p at most 0.05, and the interval excludes 1. not shown: "
    f"the interval lies within {MATTERS:g} to {1 / MATTERS:g}. detectable: the ratio below 1 that "
    "would be shown 4 times in 5."
)


def _however(missing: int) -> str:
    if not missing:
        return ""
    outcomes = plural(missing, "outcome")
    many = f"all {missing:,} missing {outcomes}" if missing > 1 else f"the missing {outcomes}"
    return f", also if {many} had gone the other way"


def _differ(*, grouping: str, p: str, missing: int) -> str:
    return (
        f"The groups differ by {grouping} (p {p}){_however(missing)}. No single group is shown to "
        "differ from the others."
    )


def _alike(*, missing: int) -> str:
    return (
        f"Every group's rate lies within {MATTERS:g} to {1 / MATTERS:g} of the rate of the others "
        f"(simultaneous 95% confidence intervals){_however(missing)}."
    )


def _open(*, groups: Sequence[str]) -> str:
    return (
        f"Inconclusive, as a ratio below {MATTERS:g} or above {1 / MATTERS:g} is not excluded: "
        f"{', '.join(groups) or 'every group'}."
    )


def _group(
    *,
    group: str,
    selected: str,
    often: str,
    rate: str,
    others: str,
    ratio: str,
    interval: str,
    missing: int,
) -> str:
    return (
        f"{group}: {selected} {often} often: {rate} against {others} of the others (ratio {ratio}, "
        f"95% CI {interval}){_however(missing)}."
    )


SENTENCES: Mapping[str, str | Callable[..., str]] = {
    "lines": lambda *, lines: "\n".join(lines),
    "ratios.note": f"{{rate}} {_NOTE}",
    "ratios.tests_note": "{tests}. adjusted p: the smallest of chi-square's and of the groups' "
    "own, adjusted for all groups and tests of this page.",
    "ratios.differ": _differ,
    "ratios.alike": _alike,
    "ratios.none_shown": "No group is shown to be {selected} more or less often than the others.",
    "ratios.open": _open,
    "ratios.group": _group,
}
