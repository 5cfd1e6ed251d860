"""The page of repeats: a table for each measure, a setting a row, a group a column."""

from evenhand.findings.estimates import if_known
from evenhand.findings.measures import Measure
from evenhand.findings.repeats import Repeated, Repeats
from evenhand.findings.report import ALL
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line

_MEANING = (
    "mean ± standard deviation over runs (n − 1): how far a repeat moves a number. It says nothing "
    "about other items: `evenhand runs report RUN` has the intervals."
)


def page(found: Repeats, *, full: bool = False) -> list[Block]:
    """Give the blocks; `full` adds the measures that are neither primary nor guarded."""
    runs = sum(len(one.runs) for one in found.settings)
    head = f"{found.instrument.title} · {len(found.settings)} settings · {runs} runs"
    blocks: list[Block] = [Line(head, "strong")]
    blocks += [Line(line, "bad") for one in found.settings for line in one.warnings]
    for measure in found.instrument.measures:
        if full or measure.role != "secondary":
            blocks += [GAP, _table(found, measure)]
    return [*blocks, GAP, Line(_MEANING, "dim")]


def _table(found: Repeats, measure: Measure) -> Grid:
    columns = [ALL]
    for grouping in found.instrument.groups:
        if measure.name in grouping.measures:
            present = {n.group: None for one in found.settings for n in one.numbers
                       if n.name == measure.name and n.group != ALL}  # fmt: skip
            columns += grouping.ordered(list(present))
            break  # our choice: by the first grouping alone; a file has all
    rows = tuple(
        (
            one.name,
            str(len(one.runs)),
            *(_cell(one.number(measure.name, c), measure) for c in columns),
        )
        for one in found.settings
    )
    return Grid(("", "runs", *columns), rows, title=measure.label)


def _cell(one: Repeated | None, measure: Measure) -> str:
    if one is None or one.mean is None:
        return "-"
    mean = numbers.value(one.mean, measure, full=True)
    shown = mean if one.sd is None else f"{mean} ± {numbers.spread(one.sd, measure)}"
    known = if_known(one.bounds, lambda end: numbers.value(end, measure, full=True))
    return shown if not known else f"{shown} ({known})"
