"""Two runs over the same items, number by number: what changed, and what may have got worse."""

from dataclasses import dataclass, replace

import polars as pl
from rich.table import Table
from rich.text import Text

from evenhand.errors import Undefined
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.equivalence import non_inferiority
from evenhand.statistics.multiplicity import holm


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """After minus before, over the items that both runs answered."""

    name: str
    before: float | None
    after: float | None
    difference: float | None
    low: float | None = None
    high: float | None = None
    se: float = 0.0
    p: float | None = None
    p_holm: float | None = None
    n: int = 0
    clusters: int = 0
    undefined: str | None = None


def change(name: str, before: pl.DataFrame, after: pl.DataFrame) -> Change:
    """After minus before over the keys that both have; columns key, cluster, value."""
    pairs = before.join(after.select("key", after="value"), on="key")
    try:
        found = clustered_mean(pairs["after"] - pairs["value"], pairs["cluster"])
    except Undefined as reason:
        return Change(name=name, before=None, after=None, difference=None, undefined=str(reason))
    return Change(
        name=name,
        before=float(pairs["value"].mean()),  # type: ignore[arg-type]
        after=float(pairs["after"].mean()),  # type: ignore[arg-type]
        difference=found.estimate,
        low=found.low,
        high=found.high,
        se=found.se,
        p=found.p_two_sided,
        n=found.n,
        clusters=found.clusters,
    )


def with_holm(family: list[Change]) -> list[Change]:
    """An endpoint without a p-value takes its place in the family with p = 1."""
    adjusted = holm([1.0 if c.p is None else c.p for c in family])
    return [replace(c, p_holm=p) for c, p in zip(family, adjusted, strict=True)]


def fell(found: Change, label: str, margin: float) -> list[str]:
    """A line if a number that should stay high is not shown to have stayed within the margin."""
    if found.difference is None:
        return [f"{label} could not be compared: {found.undefined}"]
    shown = (
        found.difference >= -margin
        if found.se == 0
        else non_inferiority(found.difference, found.se, found.clusters - 1, margin).not_inferior
    )
    if shown:
        return []
    digits = 3 if margin < 1 else 1
    seen = f"{found.difference:+.{digits}f} ({found.low:+.{digits}f} to {found.high:+.{digits}f})"
    if found.high is not None and found.high < 0:
        return [f"{label} fell: {seen}"]
    return [f"{label} is not shown to have kept within {margin:g}: {seen}"]


def rose(found: Change, label: str, margin: float) -> list[str]:
    """A line if a number that should stay low rose by more than the margin."""
    rise = found.difference or 0.0
    return [f"{label} rose by {rise:.3f}"] if rise > margin else []


def table(title: str, family: list[Change], labels: dict[str, str], unit: str) -> Table:
    columns = (title, "before", "after", "change", "95 % interval", "p", "n", unit)
    shown = Table(*columns, box=None, padding=(0, 2, 0, 0))
    for c in family:
        if c.difference is None:
            shown.add_row(labels[c.name], "", "", "undefined", Text(c.undefined or ""), "", "", "")
            continue
        p = c.p_holm if c.p_holm is not None else c.p
        shown.add_row(
            labels[c.name],
            f"{c.before:.3f}",
            f"{c.after:.3f}",
            f"{c.difference:+.3f}",
            "no spread" if c.low == c.high else f"{c.low:+.3f} to {c.high:+.3f}",
            "-" if c.p is None or p is None else f"{p:.3f}" if p >= 0.001 else "<0.001",
            f"{c.n:,}",
            f"{c.clusters}",
        )
    return shown
