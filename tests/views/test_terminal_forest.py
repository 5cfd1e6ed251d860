"""The forest plot of signs: each sign stands where its number is, or nowhere."""

import io
import math

from rich.cells import cell_len
from rich.console import Console

from evenhand.views import terminal
from evenhand.views.blocks import Bar, Bars

BARS = Bars(
    bars=(
        Bar(label="whole axis", value=0.0, low=-1.0, high=1.0),
        Bar(label="half", value=0.5, low=0.0, high=1.0, bounds=(-0.5, None)),
        Bar(label="no interval", value=-1.0),
    ),
    line=0.0,
)


class _Ascii(io.StringIO):
    encoding = "ascii"


def _shown(width: int, file: io.StringIO, bars: Bars = BARS) -> list[str]:
    Console(file=file, width=width).print(terminal.render([bars]))
    return file.getvalue().splitlines()


def _axis(line: str) -> str:
    return line[32:]


def test_a_line_goes_from_the_low_to_the_high_end_with_the_value_between() -> None:
    whole, half, alone, scale = map(_axis, _shown(93, io.StringIO()))
    # 60 columns: -1 is the first, 1 the last, 0 the 31st (29.5 is rounded to the even 30).
    assert whole == "├" + "─" * 29 + "●" + "─" * 28 + "┤"
    assert half == " " * 15 + "┄" * 15 + "│" + "─" * 13 + "●" + "─" * 14 + "┤"
    assert alone == "●" + " " * 29 + "│"
    assert (scale[:2], scale[-1], len(scale)) == ("-1", "1", 60)


def test_a_terminal_that_knows_few_signs_gets_plain_ones() -> None:
    lines = _shown(93, _Ascii())
    assert _axis(lines[0]) == "|" + "-" * 29 + "o" + "-" * 28 + "|"
    assert all(line.isascii() for line in lines)


def test_a_narrow_terminal_has_no_forest_and_none_is_wider_than_it() -> None:
    assert _shown(79, io.StringIO()) == []
    assert max(map(len, _shown(80, io.StringIO()))) <= 80


def test_an_end_that_is_not_finite_has_no_place_on_the_axis() -> None:
    bars = Bars(
        bars=(
            Bar(label="whole axis", value=0.0, low=-1.0, high=1.0),
            Bar(label="open above", value=0.5, low=-1.0, high=math.inf, bounds=(0.0, math.inf)),
            Bar(label="no number", value=math.nan, low=-math.inf, high=math.nan),
        )
    )
    _, above, nothing, _ = map(_axis, _shown(93, io.StringIO(), bars))
    assert above == " " * 30 + "┄" * 14 + "●" + "┄" * 15
    assert nothing == ""


def test_a_label_of_wide_signs_takes_as_much_room_as_any_other() -> None:
    label = "听力语言残疾/聋哑人/肢体残疾/意外事故截肢/肢残人"
    bars = Bars(bars=(Bar(label=label, value=0.0, low=-1.0, high=1.0), BARS.bars[0]))
    wide, usual, _ = _shown(93, io.StringIO(), bars)
    assert cell_len(wide) == cell_len(usual) == 92
    assert wide.index("├") < usual.index("├")  # fewer signs, in as many cells
