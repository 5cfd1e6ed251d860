"""How much of what was asked could be scored: states of rows are counted batch by batch."""

from collections import Counter
from collections.abc import Iterable

import polars as pl

from evenhand.findings.estimates import Coverage
from evenhand.findings.measures import Measure
from evenhand.findings.rows import missing_of
from evenhand.findings.scoring import MISSING, SCORED


def coverage_of(states: "Counter[str]") -> Coverage:
    """How many rows have a score, and how many have none for each reason."""
    reasons = {state: n for state, n in sorted(states.items()) if state != SCORED}
    return Coverage(n=states.total(), scored=states[SCORED], by_reason=reasons)


def count_states(
    by: dict[str, "Counter[str]"], rows: pl.DataFrame, column: str | None, state: str = "state"
) -> None:
    """Add to the states of each value of a column."""
    if column is None:
        return
    for value, status, n in rows.group_by(column, state).len().iter_rows():
        by.setdefault(str(value), Counter())[status] += n


def count_lost(
    by: dict[str, "Counter[str]"], rows: pl.DataFrame, measures: Iterable[Measure], side: str = ""
) -> None:
    """Add to the states of each measure that can lose a value beside the score: of the rows that it
    is about, those that have one and those that do not."""
    for measure in measures:
        if measure.lost is None:
            continue
        lost = pl.col(f"{missing_of(measure)}{side}")
        present = pl.any_horizontal(pl.col(f"{n}{side}").is_not_null() for n in measure.columns())
        n, missing = rows.select((present | lost).sum(), lost.sum().alias("lost")).row(0)
        if n:
            states = {SCORED: n - missing, MISSING: missing}
            by.setdefault(measure.label, Counter()).update({s: k for s, k in states.items() if k})
