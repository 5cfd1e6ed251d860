"""The parts that several of the recorded reports share."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from evenhand.findings.comparison import Comparison
from evenhand.findings.found import NO_SPREAD, Change, Estimate, Flips, Section
from evenhand.findings.report import Report
from evenhand.findings.summary import Summary
from evenhand.statistics._shared import t_above
from evenhand.statistics.multiplicity import holm
from evenhand.statistics.paired import mcnemar_p
from same_numbers.flat import CHANGE, ESTIMATE


def estimate(one: Estimate) -> dict[str, Any]:
    found = {"name": one.name} | {name: getattr(one, name) for name in ESTIMATE}
    if one.undefined == NO_SPREAD:
        found |= {"low": one.value, "high": one.value, "undefined": None}
    return found


def estimates(found: Iterable[Estimate]) -> list[dict[str, Any]]:
    return [estimate(one) for one in found]


def of_no_width(line: str) -> str:
    """A sentence about a number without spread, with its interval as it was."""
    return re.sub(r"(\S+) \(the same in all \d+ (?:clusters|topics)\)", r"\1 (\1 to \1)", line)


def change(one: Change) -> dict[str, Any]:
    found = {"name": one.name} | {name: getattr(one, name) for name in CHANGE}
    if one.undefined == NO_SPREAD:
        found |= {"low": one.difference, "high": one.difference, "undefined": None}
    return found if one.p is None else found | {"p": p_of_t(one)}


def p_of_t(one: Change) -> float | None:
    """The p-value of t, which stood in place of that of clustered sign flips."""
    assert one.difference is not None
    return 2 * t_above(one.clusters - 1, abs(one.difference) / one.se) if one.se else None


def flips(found: Mapping[str, Flips]) -> dict[str, Any]:
    """What became right and wrong, with McNemar's p-value, which took items for independent."""
    return {
        name: {"fixed": f.fixed, "broken": f.broken, "p_mcnemar": mcnemar_p(f.fixed, f.broken)}
        for name, f in found.items()
    }


def family(found: Iterable[Change]) -> list[dict[str, Any]]:
    """Changes with Holm over them, as it was."""
    plain = [change(one) for one in found]
    adjusted = holm([1.0 if one["p"] is None else one["p"] for one in plain])
    return [one | {"p_holm": p} for one, p in zip(plain, adjusted, strict=True)]


def table(section: Section | None) -> dict[str, Any]:
    """A section of two columns as a mapping."""
    assert section is not None
    return {str(row[0]): row[1] for row in section.rows}


def head(report: Report) -> dict[str, Any]:
    return {
        "benchmark": report.instrument.name,
        "method": report.side.method,
        "model": report.side.model,
        "not_run": report.not_run,
        "cost": asdict(report.cost),
        "money": asdict(report.money),
    }


def coverage(report: Report) -> dict[str, Any]:
    return asdict(report.coverage) | {"coverage": report.coverage.coverage}


def rows(report: Report) -> dict[str, list[Any]]:
    """The rows of `report.parquet`."""
    found: list[tuple[str, Estimate]] = [("all", one) for one in report.estimates]
    found += [("with masked records", one) for one in report.with_masked]
    for values in report.groups.values():
        found += [(value, one) for value, group in values.items() for one in group]
    return {f"{group} / {one.name}": [estimate(one)[c] for c in ESTIMATE] for group, one in found}


def sides(found: Comparison) -> dict[str, Any]:
    old, new = found.cost
    return {
        "before": asdict(found.before),
        "after": asdict(found.after),
        "primary": family(found.primary),
        "secondary": [change(one) for one in found.secondary],
        "cost": {"before": asdict(old), "after": asdict(new)},
    }


def counts(found: Summary) -> dict[str, Any]:
    """What `runs show` said; tags were not taken off yet."""
    since = ("money", "tags_taken_off")
    return {name: value for name, value in found.to_dict().items() if name not in since}
