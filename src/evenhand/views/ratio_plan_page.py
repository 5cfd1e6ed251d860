"""The page of a plan of ratios: how many people show a group that is behind."""

from evenhand.findings.plan import RatioPlan
from evenhand.views.blocks import Block, Grid, Line


def page(plan: RatioPlan, *, full: bool = False) -> list[Block]:
    """Make the blocks of a plan of ratios; there is no longer form of it."""
    del full
    head = (
        f"to show with a chance of {plan.power:.0%} that one of {plan.groups} equal groups has a "
        f"ratio of {plan.ratio:g}"
    )
    if plan.rate is None:
        rows = [("rankings, with one candidate of each group", f"{plan.people:,}")]
        basis = "assumed: every ranking has new candidates in a drawn order"
    else:
        rows = [("people in each group", f"{plan.each:,}"), ("people in all", f"{plan.people:,}")]
        basis = (
            f"assumed: the others are selected at {plan.rate:g}, everybody is decided on alone, "
            "and no outcome is missing"
        )
    return [Line(head, "strong"), Grid(("", ""), tuple(rows)), Line(basis, "dim")]
