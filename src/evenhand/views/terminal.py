"""This view shows blocks on a terminal, by rich."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evenhand.views.blocks import Block, Grid, Line, Page, Tone

_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "good": "green",
    "bad": "bold red",
    "open": "yellow",
    "dim": "dim",
}

_SENTENCE = 50  # our choice: a cell of more characters is a sentence and no number


def render(page: Page) -> RenderableType:
    """Render a page as rich shows it. Words go in as text, never as markup."""
    return Group(*(_shown(block) for block in page))


def width(page: Page) -> int:
    """Give the columns that the widest table needs for every cell to stand in one line."""
    grids = [block for block in page if isinstance(block, Grid)]
    return max((sum(_widths(grid)) for grid in grids), default=0)


def _widths(grid: Grid) -> list[int]:
    return [max(map(len, cells)) + 2 for cells in zip(grid.columns, *grid.rows, strict=True)]


def _shown(block: Block) -> RenderableType:
    match block:
        case Line(text, tone, indent):
            said = Text(text, style=_STYLES[tone])
            return Padding(said, (0, 0, 0, indent), expand=False) if indent else said
        case Grid():
            return _table(block)
        case _:
            return Text("")


def _table(grid: Grid) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=any(grid.columns))
    wrapped = _wrapped(grid)
    for place, name in enumerate(grid.columns):
        no_wrap = place not in wrapped
        table.add_column(Text(name, style="dim"), no_wrap=no_wrap, overflow="fold")
    for number, row in enumerate(grid.rows):
        table.add_row(*map(Text, row), style=_STYLES[grid.tone(number)])
    return Group(Text(grid.title, style="bold"), table) if grid.title else table


def _wrapped(grid: Grid) -> set[int]:
    """The columns that give way on a narrow terminal: those with sentences, else the labels."""
    lengths = [max(map(len, cells)) for cells in zip(*grid.rows, strict=True)]
    return {place for place, longest in enumerate(lengths) if longest > _SENTENCE} or {0}
