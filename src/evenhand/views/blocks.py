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


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line."""


Block = Line | Grid | Gap
Page = Sequence[Block]
GAP = Gap()
