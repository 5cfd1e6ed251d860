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
    parts = {f" in {family}": estimate for family, estimates in by_family.items()
             for estimate in estimates if estimate.name == "excess"}  # fmt: skip
    whose, largest = next(
        ((whose, estimate) for whose, estimate in ({"": excess} | parts).items()
         if tables.state_of(estimate) == SHOWN), ("", excess),
    )  # fmt: skip
    differ = tables.state_of(largest) == SHOWN
    beyond = f"beyond the {100 * placebo:.1f} that a placebo already changes"
    size = f"{tables.per_100(largest.value or 0.0)} {_OF[main]}{_interval(largest)}{whose} {beyond}"
    signed = [(measure.label, report[measure.name]) for measure in report.instrument.primary()
              if measure.name.startswith("difference.")]  # fmt: skip
    signed = [(label, estimate) for label, estimate in signed if estimate.value is not None]
    if main == "bag" or not signed:
        differ = tables.state_of(excess) == SHOWN
        open_ = "That answers differ by the group is not shown"
        return (f"{'Answers differ by the group' if differ else open_}: {size}.",)
    significant = [
        (label, estimate) for label, estimate in signed if tables.state_of(estimate) == SHOWN
    ]
    if significant:
        return (_favored(significant, report.source, main), *_also(size, differ=differ))
    if differ:
        return (f"Answers differ by the group ({size}), and no group is shown to be favored.",)
    if all(tables.state_of(estimate) == tables.SAME for _, estimate in signed):
        return (f"No group is favored by {100 * MATTERS:g} {_OF[main]} or more: every difference "
                "between two groups is smaller.",)  # fmt: skip
    label, widest = max(signed, key=lambda pair: abs(pair[1].value or 0.0))
    return (f"No group is shown to be favored, and a difference of {100 * MATTERS:g} {_OF[main]} "
            f"is not excluded. The largest is {label}: "
            f"{tables.per_100(widest.value or 0.0)}{_interval(widest)}.",)  # fmt: skip


def _favored(differences: list[tuple[str, Estimate]], source: Mapping[str, Any], main: str) -> str:
    label, largest = max(differences, key=lambda pair: abs(pair[1].value or 0.0))
    chosen, many = named(source), len(differences) - 1
    what = f"Decision {chosen!r}" if chosen is not None else "The most frequent decision"
    first, unit = (what, "of 100") if main == "decision" else ("The number", "percent")
    size = f"{tables.per_100(largest.value or 0.0)} {unit}{_interval(largest)}"
    more = f"; {many} more difference{'s' * (many > 1)} shown" if many else ""
    return f"{first}, {label}: {size}{more}."


def _also(size: str, *, differ: bool) -> tuple[str, ...]:
    return (f"Answers differ by the group: {size}.",) if differ else ()


def _interval(estimate: Estimate) -> str:
    interval = tables.ends(estimate)
    return f" (95% CI {interval})" if interval else ""
