"""The page of repeats: a table for each measure, a setting a row, a group a column."""

from evenhand.findings.estimates import if_known
from evenhand.findings.measures import Measure
from evenhand.findings.repeats import RepeatedNumber, Repeats
from evenhand.findings.report import ALL
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line

_MEANING = (
    "mean ± standard deviation over runs (n − 1): how far a repeat moves a number. It says nothing "
    "about other items: `evenhand runs report RUN` has the intervals."
)


def page(repeats: Repeats, *, full: bool = False) -> list[Block]:
    """Give the blocks; `full` adds the measures that are neither primary nor guarded."""
    runs = sum(len(setting.runs) for setting in repeats.settings)
    head = f"{repeats.instrument.title} · {len(repeats.settings)} settings · {runs} runs"
    blocks: list[Block] = [Line(head, "strong")]
    blocks += [Line(line, "bad") for setting in repeats.settings for line in setting.warnings]
    for measure in repeats.instrument.measures:
        if full or measure.role != "secondary":
            blocks += [GAP, _table(repeats, measure)]
    return [*blocks, GAP, Line(_MEANING, "dim")]


def _table(repeats: Repeats, measure: Measure) -> Grid:
    columns = [ALL]
    for grouping in repeats.instrument.groups:
        if measure.name in grouping.measures:
            present = {n.group: None for setting in repeats.settings for n in setting.numbers
                       if n.name == measure.name and n.group != ALL}  # fmt: skip
            columns += grouping.ordered(list(present))
            break  # our choice: by the first grouping alone; a file has all
    rows = tuple(
        (
            setting.name,
            str(len(setting.runs)),
            *(_cell(setting.number(measure.name, c), measure) for c in columns),
        )
        for setting in repeats.settings
    )
    return Grid(("", "runs", *columns), rows, title=measure.label)


def _cell(number: RepeatedNumber | None, measure: Measure) -> str:
    if number is None or number.mean is None:
        return "-"
    mean = numbers.value(number.mean, measure, full=True)
    text = mean if number.sd is None else f"{mean} ± {numbers.spread(number.sd, measure)}"
    bounds = if_known(number.bounds, lambda end: numbers.value(end, measure, full=True))
    return text if not bounds else f"{text} ({bounds})"
