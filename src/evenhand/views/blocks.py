"""A page is lines and tables before it is a medium: what is said is decided once, how it looks is
not.

The `*_page` files turn a finding into blocks; `terminal`, `html` and `markdown` turn blocks into
what a person sees. So a medium is one file, and no instrument has a view of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "good", "bad", "open", "dim"]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of words."""

    text: str
    tone: Tone = "plain"
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of words and numbers as text; each row has a tone."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[Tone, ...] = ()
    title: str = ""

    def tone(self, row: int) -> Tone:
        return self.tones[row] if row < len(self.tones) else "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A number with its interval and what the missing answers could make of it, as a line of
    `Bars`. None is an end that is not known."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    bounds: tuple[float | None, float | None] | None = None
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Numbers on one axis, drawn with signs where there is room. They stand in a table too, so a
    medium may leave them out."""

    bars: tuple[Bar, ...]
    line: float | None = None  # the value that says "none"


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line."""


Block = Line | Grid | Bars | Gap
Page = Sequence[Block]
GAP = Gap()
