"""The pages of a table of a paper, and of the list of all of them."""

from evenhand.findings.estimates import if_known
from evenhand.findings.papers import NOT_PRINTED
from evenhand.findings.reproduction import Catalogue, OurNumber, Reproduction, in_words
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone
from evenhand.views.charts import Pictures

_PLACES = 2  # our choice, where the paper prints no number to go by
NOT_RUN = "not run"
AS_PRINTED = "as printed"  # the system of a table that counts data


def page(reproduction: Reproduction, *, full: bool = False) -> list[Block]:
    """Give the blocks of a table: a grid for each of its columns, the paper's numbers first. The
    full page has the pictures of a figure too."""
    blocks: list[Block] = [
        Line(f"{reproduction.title} · {reproduction.where}", "strong"),
        Line(reproduction.shows),
        *[Line(note, "bad") for note in (*reproduction.notes, *_short(reproduction))],
        GAP,
    ]
    if not reproduction.published:
        blocks.insert(2, Line("The paper draws this and prints no numbers.", "dim"))
    if reproduction.read_off:
        blocks.insert(2, Line("The paper draws these numbers; the values next to ours are read "
                              "from its text or its labels.", "dim"))  # fmt: skip
    if full:
        pictures = Pictures()
        blocks += [*pictures.of(reproduction, reproduction.title), *pictures.remarks()]
    for index in range(len(reproduction.columns)):
        blocks += [_column(reproduction, index), GAP]
    return [*blocks, *_differs(reproduction)]


def _column(reproduction: Reproduction, index: int) -> Grid:
    places = decimals(reproduction, index)
    models = [f"ours: {result.model}" for result in reproduction.ours] or ["ours"]
    rows = [
        (
            title,
            *(as_printed(printed.cells[number][index]) for printed in reproduction.published),
            *(as_written(result.cells[number][index], places) for result in reproduction.ours),
            *(() if reproduction.ours else (NOT_RUN,)),
        )
        for number, title in enumerate(reproduction.rows)
    ]  # fmt: skip
    heads = [printed.system.replace(AS_PRINTED, "paper") for printed in reproduction.published]
    columns = (reproduction.columns[index], *heads, *models)
    return Grid(columns, tuple(rows))


def as_printed(cell: str) -> str:
    """Write a cell of the paper; nothing where it prints none."""
    return "" if cell == NOT_PRINTED else cell.replace("±", " ± ")


def as_written(number: OurNumber, places: int) -> str:
    """Write a number with its interval, as many digits as the paper prints."""
    if number.value is None:
        return number.why
    value = _digits(number.value, places)
    if not number.n:  # a count
        return value
    if number.sd is not None:
        return f"{value} ± {_digits(number.sd, places)} ({number.n} repeats)"
    bounds = if_known(number.bounds, lambda end: _digits(end, places))
    if number.low is None or number.high is None:
        parts = ["", number.why or "no interval", f"n {number.n:,}", bounds]
    else:
        ends = f"{_digits(number.low, places)} to {_digits(number.high, places)}"
        parts = [ends, number.why, f"n {number.n:,}", bounds]
    return f"{value} ({', '.join(filter(None, parts))})"


def _digits(value: float, places: int) -> str:
    return numbers.no_minus_zero(f"{value:.{places}f}")


def decimals(reproduction: Reproduction, index: int) -> int:
    """Count the digits behind the point that the paper prints in a column."""
    printed = [
        row[index].partition("±")[0] for system in reproduction.published for row in system.cells
    ]
    digits = [len(cell.partition(".")[2]) for cell in printed if cell != NOT_PRINTED]
    return max(digits, default=_PLACES)


def _short(reproduction: Reproduction) -> list[str]:
    """Say which of our runs are not finished, and which answers could not be scored."""
    lines = []
    for run in reproduction.runs:
        name, answers = f"{run.model}: {run.run}", run.items - run.not_run
        if run.not_run:
            lines.append(f"{name}: {run.not_run:,} of {run.items:,} items are not run yet.")
        if run.scored < answers:
            lines.append(f"{name}: {answers - run.scored:,} of {answers:,} answers could not be "
                         "scored; they may differ from those that could.")  # fmt: skip
    return lines


def _differs(reproduction: Reproduction) -> list[Block]:
    """Say what is not as in the paper: the model, the items, then what the recipe knows."""
    systems = ", ".join(
        printed.system for printed in reproduction.published if printed.system != AS_PRINTED
    )
    models = ", ".join(result.model for result in reproduction.ours)
    theirs = f"; the paper's {systems}" if systems else ""
    first = [f"Model: ours {models}{theirs}."] if models else []
    sizes = sorted({(run.items, run.sample) for run in reproduction.runs})
    if sizes:
        counted = " and ".join(
            f"{items:,} a run" + (f" ({sample})" if sample else "") for items, sample in sizes
        )
        first.append(f"Items: {counted}.")
    lines = [Line(text, indent=2) for text in (*first, *reproduction.differs)]
    return [Line("What differs from the paper", "strong"), *lines]


def catalogue_page(catalogue: Catalogue) -> list[Block]:
    """Give the blocks of the list: each table, whether it runs, and what it needs or why not."""
    rows, tones = [], []
    for entry in catalogue.entries:
        runs = "yes" if entry.runnable else "no" if entry.result else "no result"
        remark = in_words(entry.needs) if entry.runnable else entry.reason
        rows.append((entry.paper, entry.table, entry.title, runs, remark))
        tone: Tone = "plain" if entry.runnable else "open" if entry.result else "dim"
        tones.append(tone)
    can = sum(entry.runnable for entry in catalogue.results)
    none = len(catalogue.entries) - len(catalogue.results)
    return [
        Grid(("paper", "table", "what it shows", "runs", "needs, or why not"), tuple(rows),
             tuple(tones)),
        GAP,
        Line(f"{can} of {len(catalogue.results)} that hold results can be run "
             f"({catalogue.share:.0%}); {none} hold none.", "strong"),
        Line("evenhand dev reproduce PAPER TABLE --dry-run shows the calls without making one."),
    ]  # fmt: skip
