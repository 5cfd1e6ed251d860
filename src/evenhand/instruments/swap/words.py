"""The main result of a run in words: which group is favored, or that none is shown to be."""

from collections.abc import Mapping
from typing import Any

from evenhand.findings.estimates import Estimate
from evenhand.findings.ratios import SHOWN
from evenhand.findings.report import Report
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap import tables
from evenhand.instruments.swap.answers import main_of, named
from evenhand.instruments.swap.contrasts import MATTERS

_WORDS = InstrumentWords(__package__)
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
    beyond = _WORDS("beyond", placebo=100 * placebo)
    size = f"{tables.per_100(largest.value or 0.0)} {_OF[main]}{_interval(largest)}{whose} {beyond}"
    signed = [(measure.label, report[measure.name]) for measure in report.instrument.primary()
              if measure.name.startswith("difference.")]  # fmt: skip
    signed = [(label, estimate) for label, estimate in signed if estimate.value is not None]
    if main == "bag" or not signed:
        differ = tables.state_of(excess) == SHOWN
        return (_WORDS("differ" if differ else "differ_open", size=size),)
    significant = [
        (label, estimate) for label, estimate in signed if tables.state_of(estimate) == SHOWN
    ]
    if significant:
        return (_favored(significant, report.source, main), *_also(size, differ=differ))
    if differ:
        return (_WORDS("differ_alone", size=size),)
    matters = {"matters": 100 * MATTERS, "unit": _OF[main]}
    if all(tables.state_of(estimate) == tables.SAME for _, estimate in signed):
        return (_WORDS("same", **matters),)
    label, widest = max(signed, key=lambda pair: abs(pair[1].value or 0.0))
    size = f"{tables.per_100(widest.value or 0.0)}{_interval(widest)}"
    return (_WORDS("favored_open", label=label, size=size, **matters),)


def _favored(differences: list[tuple[str, Estimate]], source: Mapping[str, Any], main: str) -> str:
    label, largest = max(differences, key=lambda pair: abs(pair[1].value or 0.0))
    chosen, many = named(source), len(differences) - 1
    what = f"Decision {chosen!r}" if chosen is not None else _WORDS("most_frequent")
    first, unit = (what, "of 100") if main == "decision" else ("The number", "percent")
    size = f"{tables.per_100(largest.value or 0.0)} {unit}{_interval(largest)}"
    more = f"; {many} more difference{'s' * (many > 1)} shown" if many else ""
    return f"{first}, {label}: {size}{more}."


def _also(size: str, *, differ: bool) -> tuple[str, ...]:
    return (_WORDS("differ", size=size),) if differ else ()


def _interval(estimate: Estimate) -> str:
    interval = tables.ends(estimate)
    return f" (95% CI {interval})" if interval else ""
