"""This view shows blocks as a part of a web page, for a notebook or a file that opens without a
network."""

import html

from evenhand.views.blocks import Bars, Block, Grid, Line, Page
from evenhand.views.visible import visible

_LIGHT = "--bad:#b3261e;--good:#1b6e3c;--open:#8a5a00"
_DARK = "--bad:#ff8a80;--good:#7bd99a;--open:#ffcb6b"
_SHORT = 40  # our choice, in signs: a cell up to here stays on one line, so that no interval breaks
# A notebook has a theme of its own, whatever the system prefers.
_STYLE = f"""
.evenhand{{font:14px/1.5 system-ui,sans-serif;{_LIGHT}}}
@media (prefers-color-scheme:dark){{.evenhand{{{_DARK}}}}}
[data-jp-theme-light="true"] .evenhand,.vscode-light .evenhand{{{_LIGHT}}}
[data-jp-theme-light="false"] .evenhand,.vscode-dark .evenhand{{{_DARK}}}
.evenhand p{{margin:0;max-width:60em;white-space:pre-wrap}}
.evenhand .wide{{overflow-x:auto}}
.evenhand table{{border-collapse:collapse;margin:.2em 0;font:inherit;color:inherit}}
.evenhand table td,.evenhand table th{{padding:.15em 1em .15em 0;text-align:left}}
.evenhand table td,.evenhand table th{{vertical-align:top}}
.evenhand table td{{font-variant-numeric:tabular-nums;max-width:36em}}
.evenhand table th{{font-weight:normal;opacity:.65;white-space:nowrap}}
.evenhand table .short{{white-space:nowrap}}
.evenhand .strong{{font-weight:bold}}
.evenhand .bad{{color:var(--bad);font-weight:bold}}
.evenhand .good{{color:var(--good)}}
.evenhand .open{{color:var(--open)}}
.evenhand .dim{{opacity:.65}}
"""


def render(page: Page) -> str:
    """Render a page as one element with its style; everything in it is escaped."""
    return f'<style>{_STYLE}</style><div class="evenhand">{"".join(map(_shown, page))}</div>'


def document(page: Page, title: str) -> str:
    """Make a whole file that needs nothing beside itself."""
    # Nothing is fetched and nothing runs, whatever a mistake in escaping would let through.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    rules = f'<meta http-equiv="content-security-policy" content="{policy}">'
    head = f'<meta charset="utf-8">{rules}<title>{escape(title)}</title>'
    dark = "<style>:root{color-scheme:light dark}body{margin:2em}</style>"
    return f"<!doctype html><html><head>{head}{dark}</head><body>{render(page)}</body></html>"


def escape(text: str) -> str:
    return html.escape(visible(text))


def _shown(block: Block) -> str:
    match block:
        case Line(text, tone, indent):
            return f'<p class="{tone}" style="padding-left:{indent / 2}em">{escape(text)}</p>'
        case Grid():
            return _table(block)
        case Bars():
            return ""  # a page has charts for that
        case _:
            return "<p>&nbsp;</p>"


def _table(grid: Grid) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.columns)
    rows = []
    for number, row in enumerate(grid.rows):
        cells = "".join(map(_cell, row))
        rows.append(f'<tr class="{grid.tone(number)}">{cells}</tr>')
    title = f'<p class="strong">{escape(grid.title)}</p>' if grid.title else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'{title}<div class="wide">{table}</div>'


def _cell(text: str) -> str:
    kind = ' class="short"' if len(text) <= _SHORT else ""
    return f"<td{kind}>{escape(text)}</td>"
