"""Blocks in each medium: nothing in a text can pose as markup."""

from rich.console import Console

from evenhand.views import html, markdown, terminal
from evenhand.views.blocks import GAP, Block, Grid, Line

HOSTILE = "<script>alert(1)</script> [bold]x[/bold] | **y** `z`"
PAGE: list[Block] = [
    Line(HOSTILE, "bad"),
    GAP,
    Grid(("name", "score"), ((HOSTILE, "0.50"),), ("open",), title=HOSTILE),
]


def _shown(width: int) -> str:
    console = Console(width=width, file=None, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(terminal.render(PAGE))
    return capture.get()


def test_a_web_page_shows_a_text_and_runs_none_of_it() -> None:
    page = html.document(PAGE, HOSTILE)
    assert "<script>" not in page
    # In the title, the heading, a line, the title of a table, the table's name, and a cell.
    assert page.count("&lt;script&gt;") == 6


def test_a_terminal_shows_brackets_as_brackets() -> None:
    assert _shown(200).count("[bold]x[/bold]") == 3


def test_a_table_keeps_its_numbers_whole_on_a_narrow_screen() -> None:
    lines = _shown(40).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert any("0.50" in line for line in lines)


def test_a_cell_in_markdown_cannot_end_its_cell() -> None:
    row = markdown.render(PAGE).splitlines()[-2]
    assert row.count("|") - row.count("\\|") == 3
    assert "\\<script>" in row
