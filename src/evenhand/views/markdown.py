"""This view shows blocks as Markdown, for a pull request or a README."""

import html
import re

from evenhand.views.blocks import (
    Block,
    Box,
    Details,
    Diff,
    Figure,
    Grid,
    Heading,
    Line,
    Page,
    Tiles,
)
from evenhand.views.visible import visible

# What Markdown reads as more than words: "&" begins an entity, which can be any sign at all.
_SIGNS = re.compile(r"[\\|*_`<\[\]&~$]")
_FIRST = re.compile(r"^(\d{0,9})([#>+=.)-])")  # what makes a line a heading, a quote, a list
_QUOTED = r"\1\\\2"
_CHANGED = {"same": "{}", "gone": "~~{}~~", "new": "**{}**"}


def render(page: Page) -> str:
    return "\n".join(_shown(block) for block in page) + "\n"


def _shown(block: Block) -> str:
    block = block.grid() if isinstance(block, Tiles) else block
    match block:
        case Line(text, tone, indent):
            content = _begun(text)
            marked = f"**{content}**" if tone in ("strong", "bad") and content else content
            return f"- {marked}" if indent else f"{marked}\n"
        case Grid():
            return _table(block)
        case Heading(text, level):
            return f"{'#' * level} {_begun(text)}\n"
        case Diff(parts):
            words = [_CHANGED[kind].format(_escaped(text)) for kind, text in parts if text.strip()]
            return f"{_FIRST.sub(_QUOTED, ' '.join(words))}\n"
        case Figure(title, alt):
            return f"**{_escaped(title)}** (a picture in the HTML) {_escaped(alt)}\n"
        case Box(inner):
            return f"\n{render(inner)}"
        case Details(summary, inner):
            head = html.escape(" ".join(visible(summary).split()))
            return f"\n<details>\n<summary>{head}</summary>\n\n{render(inner)}\n</details>\n"
        case _:
            return ""


def _table(grid: Grid) -> str:
    lines = [f"**{_escaped(grid.title)}**\n"] if grid.title else []
    lines.append(_row(grid.columns))
    lines.append("|" + " --- |" * len(grid.columns))
    lines += [_row(row) for row in grid.rows]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _begun(text: str) -> str:
    """Escape a text at the beginning of a line, where more characters have a meaning."""
    return _FIRST.sub(_QUOTED, _escaped(text))


def _escaped(text: str) -> str:
    text = " ".join(visible(text).split())
    return _SIGNS.sub(r"\\\g<0>", text)
