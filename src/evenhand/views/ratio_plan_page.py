"""The page of a plan of ratios: how many people show a group that is behind."""

from evenhand.findings.ratio_plan import RatioPlan
from evenhand.views.blocks import Block, Grid, Line


def page(found: RatioPlan, *, full: bool = False) -> list[Block]:
    """Make the blocks of a plan of ratios; there is no longer form of it."""
    del full
    head = (
        f"to show with a chance of {found.power:.0%} that one of {found.groups} equal groups has a "
        f"ratio of {found.ratio:g}"
    )
    if found.rate is None:
        rows = [("rankings, with one candidate of each group", f"{found.people:,}")]
        basis = "assumed: every ranking has new candidates in a drawn order"
    else:
        rows = [("people in each group", f"{found.each:,}"), ("people in all", f"{found.people:,}")]
        basis = (
            f"assumed: the others are selected at {found.rate:g}, everybody is decided on alone, "
            "and no outcome is missing"
        )
    return [Line(head, "strong"), Grid(("", ""), tuple(rows)), Line(basis, "dim")]
