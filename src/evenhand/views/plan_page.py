"""The page of a plan: how many items, calls and tokens, and how much money."""

import math

from evenhand.findings.measures import PairedSpread
from evenhand.findings.plan import Plan
from evenhand.views import catalog
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(plan: Plan, *, full: bool = False) -> list[Block]:
    """The blocks of a plan; there is no longer form of it."""
    del full
    measure = plan.instrument.measure(plan.measure)
    head = (
        f"to see a change of {plan.detect:g} in {measure.name} with a chance of {plan.power:.0%}"
        f", after correction for {plan.family}"
    )
    rows = tuple((_sample(plan, name), f"{mde:.2f}" if math.isfinite(mde) else "none")
                  for name, mde in plan.what_samples_can_show.items())  # fmt: skip
    return [
        Line(head, "strong"),
        *_needed(plan),
        GAP,
        Grid(("smallest change that can be seen", ""), rows),
        Line(_basis(plan), "dim"),
    ]


def _needed(plan: Plan) -> list[Block]:
    if plan.too_small is not None:
        return [Line(f"{catalog.text(plan.too_small)}.", "bad")]
    assert plan.rows is not None
    assert plan.items is not None
    what = plan.assumed.rows if isinstance(plan.assumed, PairedSpread) else "items it is about"
    rows = [] if plan.rows == plan.items else [(what, f"{plan.rows:,}")]
    rows.append(("items in all" if rows else "items", f"{plan.items:,}"))
    if plan.clusters is not None:
        rows.append((f"from so many {plan.instrument.clusters}", f"{plan.clusters:,}"))
    rows += [
        ("calls, two runs", f"{plan.calls:,.0f}"),
        ("tokens, two runs", f"{plan.tokens:,.0f}"),
    ]
    if plan.money is not None:
        rows.append(("money, two runs", f"{plan.money:,.2f}"))
    return [Grid(("", ""), tuple(rows))]


def _sample(plan: Plan, name: str) -> str:
    if isinstance(plan.assumed, PairedSpread):
        return f"{name} ({plan.assumed.samples[name][0]} {plan.assumed.rows})"
    clusters = f"{plan.assumed.clusters:,} {plan.instrument.clusters}"
    return f"{name} ({plan.assumed.items:,} items of {clusters})"


def _basis(plan: Plan) -> str:
    assumed = plan.assumed
    if isinstance(assumed, PairedSpread):
        return f"assumed: sd {assumed.sd}, correlation within a cluster {assumed.icc}"
    return (
        f"from two pilot runs: standard error {assumed.se:.4f} over {assumed.clusters:,} "
        f"{plan.instrument.clusters}. Few of them make it a rough guess."
    )
