"""The page of a plan: how many items, calls and tokens, and how much money."""

import math

from evenhand.findings.measures import PairedSpread
from evenhand.findings.plan import Plan
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(found: Plan, *, full: bool = False) -> list[Block]:
    """The blocks of a plan; there is no longer form of it."""
    del full
    measure = found.instrument.measure(found.measure)
    head = (
        f"to see a change of {found.detect:g} in {measure.name} with a chance of {found.power:.0%}"
        f", after correction for {found.family}"
    )
    shown = tuple((_sample(found, name), f"{mde:.2f}" if math.isfinite(mde) else "none")
                  for name, mde in found.what_samples_can_show.items())  # fmt: skip
    return [
        Line(head, "strong"),
        *_needed(found),
        GAP,
        Grid(("smallest change that can be seen", ""), shown),
        Line(_basis(found), "dim"),
    ]


def _needed(found: Plan) -> list[Block]:
    if found.items is None or found.rows is None:
        return [Line(f"{found.too_small}.", "bad")]
    what = found.assumed.rows if isinstance(found.assumed, PairedSpread) else "items it is about"
    rows = [] if found.rows == found.items else [(what, f"{found.rows:,}")]
    rows.append(("items in all" if rows else "items", f"{found.items:,}"))
    if found.clusters is not None:
        rows.append((f"from so many {found.instrument.clusters}", f"{found.clusters:,}"))
    rows += [
        ("calls, two runs", f"{found.calls:,.0f}"),
        ("tokens, two runs", f"{found.tokens:,.0f}"),
    ]
    if found.money is not None:
        rows.append(("money, two runs", f"{found.money:,.2f}"))
    return [Grid(("", ""), tuple(rows))]


def _sample(found: Plan, name: str) -> str:
    if isinstance(found.assumed, PairedSpread):
        return f"{name} ({found.assumed.samples[name][0]} {found.assumed.rows})"
    clusters = f"{found.assumed.clusters:,} {found.instrument.clusters}"
    return f"{name} ({found.assumed.items:,} items of {clusters})"


def _basis(found: Plan) -> str:
    assumed = found.assumed
    if isinstance(assumed, PairedSpread):
        return f"assumed: sd {assumed.sd}, correlation within a cluster {assumed.icc}"
    return (
        f"from two pilot runs: standard error {assumed.se:.4f} over {assumed.clusters:,} "
        f"{found.instrument.clusters}. Few of them make it a rough guess."
    )
