"""Tables on a narrow terminal: no column goes, and no cell is cut."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from evenhand.views import terminal
from evenhand.views.blocks import Block, Details, Diff, Figure, Grid, Heading, Line

SWAP = Grid(
    ("family", "contrast", "difference", "95 %", "placebo", "prompts", "state"),
    (
        ("gender", "any two groups (adjusted)", "+3.3", "-1.3 to +8.0", "11.7", "60", "shown"),
        ("race", "Hispanic − another", "-6.7", "-15.7 to +2.4", "7.5", "60", "inconclusive"),
        ("disability", "a label − no label", "+100.0", "+91.0 to +100.0", "7.5", "60", "same"),
    ),
    title="would it be the same for somebody else? (decision: reject)",
)
FRONTIER = Grid(
    ("an answer (± 95 %)", "bias (ambiguous)", "bias (disambiguated)", "accuracy", "calls",
     "tokens", "seconds", "scored"),
    (
        ("self_consistency(calls=5)", "+0.031 ± 0.020", "-0.002 ± 0.011", "0.912 ± 0.015", "5.0",
         "1,240", "3.1", "1,000 of 1,000"),
        ("default", "+0.120 ± 0.030", "+0.010 ± 0.012", "0.871 ± 0.018", "1.0", "212", "0.4",
         "998 of 1,000"),
    ),
)  # fmt: skip


def _shown(grid: Grid, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal.render([grid]))
    return capture.get().splitlines()


def _read_back(lines: list[str], grid: Grid) -> list[list[str]]:
    """The rows as somebody reads them: a column begins where its head does, and a line with an
    empty first cell goes on with the row above it. The first line is the title."""
    starts = [lines[1].find(name) for name in grid.columns]
    rows: list[list[str]] = []
    for line in lines[1:]:
        ends = [*starts[1:], len(line)]
        cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [" ".join((a, b)).strip() for a, b in zip(rows[-1], cells, strict=True)]
    return rows


@pytest.mark.parametrize("width", [80, 90, 100])
def test_every_column_and_every_cell_of_a_swap_can_be_read(width: int) -> None:
    lines = _shown(SWAP, width)
    assert max(map(len, lines)) <= width
    assert [tuple(row) for row in _read_back(lines, SWAP)] == [SWAP.columns, *SWAP.rows]


@pytest.mark.parametrize("grid", [SWAP, FRONTIER])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_letter_of_a_table_is_lost(grid: Grid, width: int) -> None:
    lines = _shown(grid, width)
    assert max(map(len, lines)) <= width
    assert _letters(lines) == _letters([grid.title, *grid.columns, *sum(grid.rows, ())])


def test_words_and_numbers_stay_whole_at_80_columns() -> None:
    lines = " ".join(_shown(FRONTIER, 80))
    assert all(word in lines for row in FRONTIER.rows for cell in row[1:] for word in cell.split())
    assert all(word in lines for name in FRONTIER.columns for word in name.split()[:1])


def test_a_table_that_fits_stands_in_one_line_a_row() -> None:
    wide = terminal.width([SWAP])
    assert len(_shown(SWAP, wide)) == 2 + len(SWAP.rows)
    assert len(_shown(SWAP, wide - 1)) > 2 + len(SWAP.rows)


_CELL = st.text("ab +0.", max_size=70) | st.sampled_from(["日本語の長い名前", "x" * 90, ""])


@settings(max_examples=40)
@given(
    st.integers(1, 9).flatmap(
        lambda columns: st.lists(st.tuples(*[_CELL] * columns), min_size=1, max_size=4)
    ),
    st.integers(60, 130),
)
def test_whatever_stands_in_a_table_is_shown_whole(rows: list[tuple[str, ...]], width: int) -> None:
    grid = Grid(rows[0], tuple(rows[1:]))
    shown = _shown(grid, width)
    assert _letters(shown) == _letters([cell for row in rows for cell in row])


@settings(max_examples=40)
@given(
    st.integers(1, 30).flatmap(
        lambda columns: st.lists(st.tuples(*[_CELL] * columns), min_size=2, max_size=3)
    ),
    st.integers(4, 60),
)
def test_no_cell_is_blank_or_cut_however_little_room_there_is(
    rows: list[tuple[str, ...]], width: int
) -> None:
    """Where each cell has a line, the names come again with each row."""
    shown = _shown(Grid(rows[0], tuple(rows[1:])), width)
    assert max(map(cell_len, shown)) <= width
    missing = _letters([cell for row in rows for cell in row]) - _letters(shown)
    assert not missing


def test_thirty_columns_on_forty_are_lines_of_a_name_and_a_value() -> None:
    names = tuple(f"name{n}" for n in range(30))
    grid = Grid(names, tuple(tuple(f"{row}.{n}" for n in range(30)) for row in (1, 2)), title="all")
    lines = [[f"name{n}: {row}.{n}" for n in range(30)] for row in (1, 2)]
    assert _shown(grid, 40) == ["all", *lines[0], "", *lines[1]]


def test_signs_of_two_columns_are_shown_also_where_each_cell_is_as_narrow_as_can_be() -> None:
    """Ten columns of two and nine gaps of two are 38."""
    grid = Grid(("日本",) * 10, (("語日本",) * 10,))
    assert _letters(_shown(grid, 38)) == Counter({"日": 20, "本": 20, "語": 10})
    assert not any(":" in line for line in _shown(grid, 38))
    assert _shown(grid, 37)[:2] == ["日本: 語日本"] * 2


@pytest.mark.parametrize("width", [9, 80])
def test_signs_that_turn_the_direction_of_reading_are_not_sent_to_a_terminal(width: int) -> None:
    turned = "safe\u202eefas\u200b"
    grid = Grid((turned,) * 2, ((turned,) * 2,), title=turned)
    page: list[Block] = [grid, Line(turned), Heading(turned), Details(turned, (Line(turned),)),
            Diff((("gone", turned),)), Figure(turned, turned, "")]  # fmt: skip
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal.render(page))
    assert not set("\u202e\u200b") & set(capture.get())
    assert terminal.width([grid]) == 2 * len("safeefas") + 2


def _letters(texts: list[str]) -> Counter[str]:
    return Counter("".join("".join(texts).split()))
