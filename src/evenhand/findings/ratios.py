"""This is what rankings and stored decisions say alike of a group's ratio to the best: the states,
the words, and what is too few to tell."""

from collections.abc import Mapping

from evenhand.findings.found import Section
from evenhand.statistics.multiplicity import holm

# Our choice of what is too small to matter: only "not shown" rests on it, and no ratio is called
# bad for being below it. US guidelines of 1978 begin to look at a ratio there.
MATTERS = 0.8
# Our choice, as for Pearson's chi-square (Cochran 1954): a group with fewer selections to expect
# has no ratio. One person who was selected would be the best group, and one who was not the worst.
RARE = 5
MOST_GROUPS = (
    50  # our choice: the intervals of so many take a minute, and four times as long of twice
)
SHOWN, NOT_SHOWN, TOO_FEW = "shown", "not shown", "too few to tell"


def smallest_said(smallest: float, ends: tuple[float, float], chance: float) -> str:
    """Say the smallest ratio of a table beside what chance alone prints."""
    return (
        f"The smallest ratio is {smallest:.2f} ({ends[0]:.2f} to {ends[1]:.2f}); chance alone gets "
        f"below {chance:.2f} in one audit of 20 of this size."
    )


def tests_section(tested: Mapping[str, float], note: str) -> Section:
    """Make the table of one test for each grouping, with Holm over all of them."""
    after = holm(list(tested.values()))
    rows = tuple(
        (name, p_said(p), p_said(adjusted),
         SHOWN if adjusted <= 0.05 else "not shown to differ")
        for (name, p), adjusted in zip(tested.items(), after, strict=True)
    )  # fmt: skip
    return Section(
        name="tests", title="does it matter at all?", columns=("", "p", "after Holm", "state"),
        rows=rows, in_short=True, note=note,
    )  # fmt: skip


def p_said(p: float) -> str:
    """Write a p-value; below what draws can tell it is a bound."""
    return "< 0.0005" if p < 0.0005 else f"{p:.3f}"
