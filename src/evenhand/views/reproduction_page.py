"""The pages of a table of a paper, and of the list of all of them."""

from evenhand.findings.estimates import if_known
from evenhand.findings.reproduction import Catalogue, Ours, Reproduction, in_words
from evenhand.papers import NOT_PRINTED
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

_PLACES = 2  # our choice, where the paper prints no number to go by
NOT_RUN = "not run"
AS_PRINTED = "as printed"  # the system of a table that counts data


def page(found: Reproduction, *, full: bool = False) -> list[Block]:
    """Give the blocks of a table: a grid for each of its columns, the paper's numbers first."""
    del full
    blocks: list[Block] = [
        Line(f"{found.title} · {found.where}", "strong"),
        Line(found.shows),
        *[Line(note, "bad") for note in (*found.notes, *_short(found))],
        GAP,
    ]
    if not found.published:
        blocks.insert(2, Line("The paper draws this and prints no numbers.", "dim"))
    if found.read_off:
        blocks.insert(2, Line("The paper draws these numbers; what is beside ours is what its text "
                              "or its labels say.", "dim"))  # fmt: skip
    for place in range(len(found.columns)):
        blocks += [_column(found, place), GAP]
    return [*blocks, *_differs(found)]


def _column(found: Reproduction, place: int) -> Grid:
    places = _decimals(found, place)
    models = [f"ours: {one.model}" for one in found.ours] or ["ours"]
    rows = [
        (
            title,
            *(_printed(said.cells[number][place]) for said in found.published),
            *(_written(one.cells[number][place], places) for one in found.ours),
            *(() if found.ours else (NOT_RUN,)),
        )
        for number, title in enumerate(found.rows)
    ]  # fmt: skip
    heads = [said.system.replace(AS_PRINTED, "paper") for said in found.published]
    columns = (found.columns[place], *heads, *models)
    return Grid(columns, tuple(rows))


def _printed(cell: str) -> str:
    return "" if cell == NOT_PRINTED else cell.replace("±", " ± ")


def _written(one: Ours, places: int) -> str:
    """Write a number with its interval, as many digits as the paper prints."""
    if one.value is None:
        return one.why
    value = _digits(one.value, places)
    if not one.n:  # a count
        return value
    known = if_known(one.bounds, lambda end: _digits(end, places))
    if one.low is None or one.high is None:
        said = ["", one.why or "no interval", f"n {one.n:,}", known]
    else:
        ends = f"{_digits(one.low, places)} to {_digits(one.high, places)}"
        said = [ends, one.why, f"n {one.n:,}", known]
    return f"{value} ({', '.join(filter(None, said))})"


def _digits(value: float, places: int) -> str:
    written = f"{value:.{places}f}"
    return written.removeprefix("-") if not written.strip("-0.") else written


def _decimals(found: Reproduction, place: int) -> int:
    """The digits behind the point that the paper prints in a column."""
    printed = [row[place].partition("±")[0] for said in found.published for row in said.cells]
    known = [len(cell.partition(".")[2]) for cell in printed if cell != NOT_PRINTED]
    return max(known, default=_PLACES)


def _short(found: Reproduction) -> list[str]:
    """Say which of our runs are not finished, and which answers could not be scored."""
    said = []
    for one in found.runs:
        name, asked = f"{one.model}: {one.run}", one.items - one.not_run
        if one.not_run:
            said.append(f"{name}: {one.not_run:,} of {one.items:,} items are not run yet.")
        if one.scored < asked:
            said.append(f"{name}: {asked - one.scored:,} of {asked:,} answers could not be scored; "
                        "they may differ from those that could.")  # fmt: skip
    return said


def _differs(found: Reproduction) -> list[Block]:
    """Say what is not as in the paper: the model, the items, then what the recipe knows."""
    systems = ", ".join(one.system for one in found.published if one.system != AS_PRINTED)
    models = ", ".join(one.model for one in found.ours)
    theirs = f"; the paper's {systems}" if systems else ""
    first = [f"Model: ours {models}{theirs}."] if models else []
    sizes = sorted({(one.items, one.sample) for one in found.runs})
    if sizes:
        counted = " and ".join(
            f"{items:,} a run" + (f" ({sample})" if sample else "") for items, sample in sizes
        )
        first.append(f"Items: {counted}.")
    lines = [Line(text, indent=2) for text in (*first, *found.differs)]
    return [Line("What differs from the paper", "strong"), *lines]


def catalogue_page(found: Catalogue, *, full: bool = False) -> list[Block]:
    """Give the blocks of the list: each table, whether it runs, and what it needs or why not."""
    del full
    rows, tones = [], []
    for one in found.entries:
        runs = "yes" if one.runnable else "no" if one.result else "no result"
        said = in_words(one.needs) if one.runnable else one.reason
        rows.append((one.paper, one.table, one.title, runs, said))
        tone: Tone = "plain" if one.runnable else "open" if one.result else "dim"
        tones.append(tone)
    can = sum(one.runnable for one in found.results)
    none = len(found.entries) - len(found.results)
    return [
        Grid(("paper", "table", "what it shows", "runs", "needs, or why not"), tuple(rows),
             tuple(tones)),
        GAP,
        Line(f"{can} of {len(found.results)} that hold results can be run "
             f"({found.share:.0%}); {none} hold none.", "strong"),
        Line("evenhand reproduce PAPER TABLE --dry-run says what one will ask, without a call."),
    ]  # fmt: skip
