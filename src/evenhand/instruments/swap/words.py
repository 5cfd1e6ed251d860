"""The main result of a run in words: which group is favored, or that none is shown to be."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.estimates import Estimate
from evenhand.findings.ratios import SHOWN
from evenhand.findings.report import Report
from evenhand.instruments.swap import tables
from evenhand.instruments.swap.answers import main_of, named
from evenhand.instruments.swap.contrasts import MATTERS

_OF = {"decision": "of 100 decisions", "number": "percent", "bag": "of 100 words"}


def says(report: Report) -> tuple[str, ...]:
    """Say the main result: of the signed contrasts where there are any, then of the excess."""
    placebo, excess = report["placebo"].value, report["excess"]
    if excess.value is None or placebo is None:
        return ()
    main = main_of(report.source)
    by_family = report.groups.get("family", {})
    parts = {f" in {family}": one for family, found in by_family.items()
             for one in found if one.name == "excess"}  # fmt: skip
    whose, largest = next(
        ((whose, one) for whose, one in ({"": excess} | parts).items()
         if tables.state_of(one) == SHOWN), ("", excess),
    )  # fmt: skip
    differ = tables.state_of(largest) == SHOWN
    beyond = f"beyond the {100 * placebo:.1f} that a placebo already changes"
    size = f"{tables.per_100(largest.value or 0.0)} {_OF[main]}{_interval(largest)}{whose} {beyond}"
    signed = [(one.label, report[one.name]) for one in report.instrument.primary()
              if one.name.startswith("difference.")]  # fmt: skip
    signed = [(label, one) for label, one in signed if one.value is not None]
    if main == "bag" or not signed:
        differ = tables.state_of(excess) == SHOWN
        open_ = "That answers differ by the group is not shown"
        return (f"{'Answers differ by the group' if differ else open_}: {size}.",)
    shown_ = [(label, one) for label, one in signed if tables.state_of(one) == SHOWN]
    if shown_:
        return (_favored(shown_, report.source, main), *_also(size, differ=differ))
    if differ:
        return (f"Answers differ by the group ({size}), and no group is shown to be favored.",)
    if all(tables.state_of(one) == tables.SAME for _, one in signed):
        return (f"No group is favored by {100 * MATTERS:g} {_OF[main]} or more: every difference "
                "between two groups is smaller.",)  # fmt: skip
    label, widest = max(signed, key=lambda pair: abs(pair[1].value or 0.0))
    return (f"No group is shown to be favored, and a difference of {100 * MATTERS:g} {_OF[main]} "
            f"is not excluded. The largest is {label}: "
            f"{tables.per_100(widest.value or 0.0)}{_interval(widest)}.",)  # fmt: skip


def _favored(shown: list[tuple[str, Estimate]], source: Mapping[str, Any], main: str) -> str:
    label, one = max(shown, key=lambda pair: abs(pair[1].value or 0.0))
    chosen, many = named(source), len(shown) - 1
    what = f"Decision {chosen!r}" if chosen is not None else "The most frequent decision"
    first, unit = (what, "of 100") if main == "decision" else ("The number", "percent")
    size = f"{tables.per_100(one.value or 0.0)} {unit}{_interval(one)}"
    more = f"; {many} more difference{'s' * (many > 1)} shown" if many else ""
    return f"{first}, {label}: {size}{more}."


def _also(size: str, *, differ: bool) -> tuple[str, ...]:
    return (f"Answers differ by the group: {size}.",) if differ else ()


def _interval(one: Estimate) -> str:
    found = tables.ends(one)
    return f" (95% CI {found})" if found else ""
