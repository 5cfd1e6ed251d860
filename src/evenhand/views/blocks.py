"""A page is lines, tables and pictures before it is a medium: what is said is decided once, how it
looks is not.

The `*_page` files turn a finding into blocks; `terminal`, `html` and `markdown` turn blocks into
what a person sees. So a medium is one file, and no instrument has a view of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from typing import Literal

Tone = Literal["plain", "strong", "good", "bad", "open", "dim"]
Kind = Literal["same", "gone", "new"]


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
    links: tuple[str, ...] = ()  # of each row: the page of the same site that its last cell names

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
    """Numbers on one axis, drawn with characters if there is room. A table has them too, so a
    medium may leave them out."""

    bars: tuple[Bar, ...]
    line: float | None = None  # the value that says "none"


@dataclass(frozen=True, slots=True)
class BlankLine:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: 1 is the title of a whole page, 2 that of a part, which a list of contents names,
    3 that of a part's part."""

    text: str
    level: Literal[1, 2, 3] = 2


@dataclass(frozen=True, slots=True)
class Diff:
    """Two texts in one, by words: what both have, what only the first has, what only the second
    has."""

    parts: tuple[tuple[Kind, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture that has its title in itself, with what it shows in words for who cannot see it."""

    title: str
    alt: str
    svg: str


@dataclass(frozen=True, slots=True)
class Box:
    """Blocks that stand together, apart from the others: an answer, or a text of somebody else."""

    page: tuple["Block", ...]
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks behind one line, which a reader opens."""

    summary: str
    page: tuple["Block", ...]


MOST_TILES = 3  # our choice: what a reader remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number that a reader should remember."""

    label: str
    value: str
    detail: str = ""  # its interval, or what it means
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Tiles:
    """A few numbers in large print; a medium without large print shows a table."""

    tiles: tuple[Tile, ...]

    def grid(self) -> Grid:
        """Return the same numbers as a table."""
        rows = tuple((tile.label, tile.value, tile.detail) for tile in self.tiles)
        return Grid(("", "", ""), rows, tuple(tile.tone for tile in self.tiles))


Block = Line | Grid | Bars | BlankLine | Heading | Diff | Figure | Box | Details | Tiles
Page = Sequence[Block]
GAP = BlankLine()


_WORDS = 400  # our choice, of each text: the work grows with the square


def diff(before: str, after: str) -> Diff:
    """Say which words both texts have, which only the first, which only the second."""
    old, new = before.split(), after.split()
    words = old[:_WORDS], new[:_WORDS]
    parts = chain.from_iterable(
        _part(words, step) for step in SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    )
    rest = max(len(old), len(new)) - _WORDS
    more: tuple[tuple[Kind, str], ...] = (("same", f"… ({rest:,} more words)"),) if rest > 0 else ()
    return Diff((*parts, *more))


def _part(
    words: tuple[list[str], list[str]], step: tuple[str, int, int, int, int]
) -> list[tuple[Kind, str]]:
    kind, a, b, c, d = step
    if kind == "equal":
        return [("same", " ".join(words[0][a:b]))]
    parts: list[tuple[Kind, str]] = [("gone", " ".join(words[0][a:b]))] if b > a else []
    return [*parts, ("new", " ".join(words[1][c:d]))] if d > c else parts
