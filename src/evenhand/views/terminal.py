"""This view shows blocks on a terminal, by rich."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evenhand.views.blocks import (
    Bar,
    Bars,
    Block,
    Box,
    Details,
    Diff,
    Figure,
    Grid,
    Heading,
    Kind,
    Line,
    Page,
    Tiles,
    Tone,
)
from evenhand.views.visible import visible

_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "good": "green",
    "bad": "bold red",
    "open": "yellow",
    "dim": "dim",
}

_CHANGED: dict[Kind, str] = {"same": "", "gone": "red strike", "new": "green underline"}
_AROUND: dict[Kind, tuple[str, str]] = {"same": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}
_ROOM = 80  # columns: with less, the forest plot is left out
_LABEL, _AXIS = 30, 60  # columns of its names, and at most of its axis
# Both ends of an interval, its line, the value, "none" outside it and within it, and what missing
# answers allow.
_SIGNS = {True: tuple("├┤─●│┼┄"), False: tuple("||-o:+.")}
_SENTENCE = 50  # our choice: a cell of more characters is a sentence and no number
_WORD = 15  # our choice: a longer word, such as the path of a file, may be broken before a number
_GAP = 2  # columns between two columns of a table
_LEAST = 2  # columns: the widest sign, such as a Chinese one, takes two


def render(page: Page) -> RenderableType:
    """Render a page as rich shows it. Words go in as text, never as markup, and
    without invisible characters."""
    return Group(*(_shown(block) for block in page))


def width(page: Page) -> int:
    """Give the columns that the widest table needs for every cell to stand in one line."""
    grids = [_seen(block) for block in page if isinstance(block, Grid)]
    return max((sum(_widths(grid)) + _between(grid) for grid in grids), default=0)


def _shown(block: Block) -> RenderableType:
    block = block.grid() if isinstance(block, Tiles) else block
    match block:
        case Line(text, tone, indent):
            content = Text(visible(text), style=_STYLES[tone])
            return Padding(content, (0, 0, 0, indent), expand=False) if indent else content
        case Grid():
            return FittedTable(block)
        case Heading(text):
            return Text(visible(text), style="bold")
        case Diff(parts):
            return Text(" ").join(_words(kind, words) for kind, words in parts)
        case Figure(title, alt):
            return Text(visible(f"{title} (a picture in the HTML): {alt}"), style="dim")
        case Box() | Details():
            heading = [Text(visible(block.summary))] if isinstance(block, Details) else []
            return Group(*heading, Padding(render(block.page), (0, 0, 0, 2), expand=False))
        case Bars():
            return Forest(block)
        case _:
            return Text("")


def _words(kind: Kind, words: str) -> Text:
    """Mark what changed with brackets too, as `git diff --word-diff` does: a log has no colors."""
    begin, end = _AROUND[kind]
    return Text(f"{begin}{visible(words)}{end}", style=_CHANGED[kind])


class FittedTable:
    """A table that fits: on a narrow terminal its cells go on in a next line, and none is cut.
    Without room for its columns, each cell has a line, "name: value"."""

    def __init__(self, grid: Grid) -> None:
        self._grid = _seen(grid)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Make the columns as wide as the terminal lets them be."""
        del console
        grid = self._grid
        if grid.title:
            yield Text(grid.title, style="bold")
        wide = _fitted(grid, options.max_width)
        yield from _lines(grid) if wide is None else [_table(grid, wide)]


def _seen(grid: Grid) -> Grid:
    return replace(
        grid,
        columns=tuple(map(visible, grid.columns)),
        rows=tuple(tuple(map(visible, row)) for row in grid.rows),
        title=visible(grid.title),
    )


def _table(grid: Grid, widths: list[int]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=any(grid.columns))
    for name, wide in zip(grid.columns, widths, strict=True):
        table.add_column(Text(name, style="dim"), width=wide, overflow="fold")
    for number, row in enumerate(grid.rows):
        table.add_row(*map(Text, row), style=_STYLES[grid.tone(number)])
    return table


def _lines(grid: Grid) -> Iterator[Text]:
    """Each row as lines, with an empty one between two rows; without rows, the names alone."""
    for number, row in enumerate(grid.rows):
        if number:
            yield Text("")
        for name, cell in zip(grid.columns, row, strict=True):
            text = f"{name}: {cell}" if name else cell
            yield Text(text, style=_STYLES[grid.tone(number)], overflow="fold")
    if not grid.rows:
        yield Text(", ".join(grid.columns), style="dim", overflow="fold")


def _widths(grid: Grid, parts: Callable[[str], list[str]] = str.splitlines) -> list[int]:
    """The widest part of each column's cells: a line, or a word."""
    return [
        max((cell_len(part) for cell in cells for part in parts(cell)), default=0) or 1
        for cells in zip(grid.columns, *grid.rows, strict=True)
    ]


def _between(grid: Grid) -> int:
    return _GAP * (len(grid.columns) - 1)


def _fitted(grid: Grid, room: int) -> list[int] | None:
    """The width of each column; None where they cannot all stand side by side. Where there is too
    little room, the widest gives way first: those with sentences or else the labels, then any other
    down to its longest word, and at last words are broken."""
    wide = _widths(grid)
    words = [min(longest, _WORD) for longest in _widths(grid, str.split)]
    first = _gives_way(grid)
    soft = [words[index] if index in first else now for index, now in enumerate(wide)]
    for least in (soft, words, [_LEAST] * len(wide)):
        while sum(wide) > room - _between(grid):
            over = [index for index, now in enumerate(wide) if now > least[index]]
            if not over:
                break
            wide[max(over, key=lambda index: wide[index])] -= 1
    return wide if sum(wide) <= room - _between(grid) else None


def _gives_way(grid: Grid) -> set[int]:
    """The columns that give way first: those with sentences, else the labels."""
    lengths = [max(map(len, cells)) for cells in zip(grid.columns, *grid.rows, strict=True)]
    return {index for index, longest in enumerate(lengths) if longest > _SENTENCE} or {0}


class Forest:
    """A forest plot of characters, ├──●──┤, one line per number; nothing on a narrow terminal."""

    def __init__(self, bars: Bars) -> None:
        self._drawn = bars

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw as wide as the terminal is, in ASCII if it knows no other characters."""
        del console
        if options.max_width >= _ROOM:
            glyphs = _SIGNS[options.encoding.lower().startswith("utf")]
            yield from _forest(self._drawn, min(options.max_width - _LABEL - 2, _AXIS), glyphs)


def _forest(bars: Bars, wide: int, glyphs: tuple[str, ...]) -> Iterator[Text]:
    ends = [end for bar in bars.bars for end in _ends(bar)]
    ends += [] if bars.line is None else [bars.line]
    low, room = min(ends, default=0.0), (max(ends, default=0.0) - min(ends, default=0.0)) or 1.0

    def at(value: float) -> int:
        return round((wide - 1) * (value - low) / room)

    for bar in bars.bars:
        # By cells: a Chinese or Korean character is two wide.
        name = set_cell_size(" ".join(visible(bar.label[:200]).split()), _LABEL)
        line = "".join(_signs(bar, bars.line, wide, glyphs, at))
        yield Text(f"{name}  {line}".rstrip(), style=_STYLES[bar.tone])
    first, last = f"{low:.3g}", f"{low + room:.3g}"
    yield Text(f"{'':<{_LABEL}}  {first}{last:>{wide - len(first)}}", style=_STYLES["dim"])


def _ends(bar: Bar) -> list[float]:
    values = (bar.value, bar.low, bar.high, *(bar.bounds or ()))
    return [end for end in map(_finite, values) if end is not None]


def _finite(end: float | None) -> float | None:
    """An end that has a place on the axis; what is not finite has none, as an unknown one."""
    return end if end is not None and math.isfinite(end) else None


def _signs(
    bar: Bar, none: float | None, wide: int, glyphs: tuple[str, ...], at: Callable[[float], int]
) -> list[str]:
    """One line of the plot. A value without an interval stands alone; missing answers that could be
    anything reach both ends."""
    left, right, across, value, outside, within, bound = tuple(glyphs)
    row = [" "] * wide
    if bar.bounds is not None:
        low, high = map(_finite, bar.bounds)
        start, stop = 0 if low is None else at(low), wide - 1 if high is None else at(high)
        row[start : stop + 1] = bound * (stop + 1 - start)
    middle, low, high = map(_finite, (bar.value, bar.low, bar.high))
    if middle is not None and low is not None and high is not None:
        start, stop = at(low), at(high)
        row[start : stop + 1] = across * (stop + 1 - start)
        row[start], row[stop] = left, right
    if none is not None:
        row[at(none)] = within if row[at(none)] == across else outside
    if middle is not None:
        row[at(middle)] = value
    return row
