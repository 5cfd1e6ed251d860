"""This view shows blocks as a part of a web page, as a file that needs no network, and, printed
by a browser on this machine, as a PDF."""

import html
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.views.blocks import (
    Bars,
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

_SHORT = 40  # our choice, in characters: a cell up to here stays on one line, so no interval breaks
_LISTED = 3  # our choice: a page of fewer parts needs no list of them
_CHANGED = {"same": "{}", "gone": "<del>{}</del>", "new": "<ins>{}</ins>"}
# Nothing is fetched and nothing runs, whatever a mistake in escaping would let through.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_UNQUOTED = " :;,/=()!*@$+?[]{}~.-_'"  # what may stand as it is in the address of a picture


def render(page: Page) -> str:
    """Render a page as one element with its style; everything in it is escaped."""
    return f'<style>{_style("blocks.css")}</style><div class="evenhand">{body(page)}</div>'


def document(page: Page, title: str) -> str:
    """Make a self-contained file with a list of its parts."""
    opening = (
        ""
        if any((isinstance(block, Heading) and block.level == 1) for block in page)
        else f"<h1>{escape(title)}</h1>"
    )
    return framed(f"{opening}{body(page)}", title)


def framed(inner: str, title: str, style: str = "") -> str:
    """Make a whole HTML file around a body.

    Args:
        inner: The body, as HTML that is escaped already.
        title: The title, not escaped.
        style: CSS to add.
    """
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="content-security-policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{_style('blocks.css')}{_style('document.css')}{style}</style>"
    )
    main = f'<main class="evenhand">{inner}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>\n'


def escape(text: str) -> str:
    return html.escape(visible(text))


def _style(name: str) -> str:
    return read_text(__package__, name)


def body(page: Page) -> str:
    """Give the blocks of a page, before its first part a list of the parts if it has several."""
    parts = [block for block in page if isinstance(block, Heading) and block.level == 2]
    rendered, number = [], 0
    for block in page:
        if not (isinstance(block, Heading) and block.level == 2):
            rendered.append(_shown(block))
            continue
        if not number and len(parts) >= _LISTED:
            rendered.append(_contents(parts))
        number += 1
        rendered.append(f'<h2 id="part-{number}">{escape(block.text)}</h2>')
    return "".join(rendered)


def _contents(parts: Iterable[Heading]) -> str:
    entries = "".join(
        f'<li><a href="#part-{number}">{escape(part.text)}</a></li>'
        for number, part in enumerate(parts, 1)
    )
    return f'<nav aria-label="Contents"><ol>{entries}</ol></nav>'


def _shown(block: Block) -> str:
    match block:
        case Line(text, tone, indent):
            inset = f' style="padding-left:{indent / 2}em"' if indent else ""
            return f'<p class="{tone}"{inset}>{escape(text)}</p>'
        case Grid():
            return _table(block)
        case Heading(text, level):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Diff(parts):
            words = (_CHANGED[kind].format(escape(text)) for kind, text in parts)
            return f'<p class="diff">{" ".join(words)}</p>'
        case Figure():
            return _figure(block)
        case Box() | Details():
            return _holding(block)
        case Tiles():
            return _tiles(block)
        case _:  # of bars a page has charts
            return "" if isinstance(block, Bars) else '<div class="gap"></div>'


def _holding(block: Box | Details) -> str:
    held = "".join(map(_shown, block.page))
    if isinstance(block, Box):
        return f'<div class="box {block.tone}">{held}</div>'
    return f"<details><summary>{escape(block.summary)}</summary><div>{held}</div></details>"


def _tiles(block: Tiles) -> str:
    tiles = []
    for tile in block.tiles:
        detail = f"<dd>{escape(tile.detail)}</dd>" if tile.detail else ""
        tiles.append(
            f'<div class="{tile.tone}"><dt>{escape(tile.label)}</dt>'
            f'<dd class="number">{escape(tile.value)}</dd>{detail}</div>'
        )
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _figure(figure: Figure) -> str:
    """A picture as an image of its own: what is within an image runs nothing and fetches nothing,
    whatever names its labels have."""
    address = f"data:image/svg+xml,{quote(visible(figure.svg), safe=_UNQUOTED)}"
    alt_text = f"{figure.title}. {figure.alt}"  # the picture itself has its title
    image = f'<img src="{html.escape(address)}" alt="{escape(alt_text)}">'
    # On a narrow screen it scrolls within itself, as a table does.
    name = escape(figure.title)
    return f'<figure class="wide" tabindex="0" aria-label="{name}">{image}</figure>'


def _table(grid: Grid) -> str:
    head = "".join(map(_head, grid.columns)) if any(grid.columns) else ""
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    rows = []
    for number, row in enumerate(grid.rows):
        linked = grid.links[number] if grid.links else ""
        cells = "".join(map(_cell, row[:-1] if linked else row))
        cells += f'<td><a href="{escape(linked)}">{escape(row[-1])}</a></td>' if linked else ""
        rows.append(f'<tr class="{grid.tone(number)}">{cells}</tr>')
    title = f'<p class="strong">{escape(grid.title)}</p>' if grid.title else ""
    table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    # What is wider than the page scrolls within itself, by the keyboard too.
    name = escape(grid.title or ", ".join(filter(None, grid.columns)) or "table")
    return f'{title}<div class="wide" tabindex="0" role="group" aria-label="{name}">{table}</div>'


def _head(text: str) -> str:
    return f'<th scope="col">{escape(text)}</th>' if text else "<td></td>"


def _cell(text: str) -> str:
    kind = ' class="short"' if len(text) <= _SHORT else ""
    return f"<td{kind}>{escape(text)}</td>"


_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
          "msedge", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
          "/Applications/Chromium.app/Contents/MacOS/Chromium")  # fmt: skip
_SECONDS = 120
# Nothing is fetched, also not by the browser for itself; the page itself forbids every script.
_QUIET = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync",
          "--host-resolver-rules=MAP * ~NOTFOUND", "--no-pdf-header-footer")  # fmt: skip


def browser() -> str:
    """Find a Chromium; `UserError` with what to do where there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise UserError(
            "a PDF is printed by Chromium, and there is none on this machine: install it (on "
            "Debian: apt-get install chromium) and give the command again, or write --out "
            "report.html and print that from any browser"
        )
    return program


def pdf(document: str) -> bytes:
    """Print a whole HTML file."""
    program = browser()
    with tempfile.TemporaryDirectory(prefix="evenhand-print-", ignore_cleanup_errors=True) as held:
        folder = Path(held)
        source, target = folder / "page.html", folder / "page.pdf"
        source.write_text(document, "utf-8")
        # As root it refuses to start within its sandbox.
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *_QUIET, *root, f"--user-data-dir={folder / 'profile'}",
                   f"--print-to-pdf={target}", source.as_uri()]  # fmt: skip
        try:
            ran = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{program} could not print the page: {error}; {_ELSE}") from None
        if ran.returncode or not target.is_file():
            last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
            reason = "".join(last) or f"it ended with code {ran.returncode}"
            raise UserError(f"{program} printed nothing: {reason}; {_ELSE}")
        return target.read_bytes()


_ELSE = "write --out report.html and print that from any browser"
