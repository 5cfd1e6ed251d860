"""This view shows blocks as a part of a web page, for a notebook or a file that opens without a
network."""

from html import escape

from evenhand.views.blocks import Block, Grid, Line, Page

_STYLE = """
.evenhand{font:14px/1.5 system-ui,sans-serif;max-width:60em}
.evenhand p{margin:0;white-space:pre-wrap}
.evenhand table{border-collapse:collapse;margin:.2em 0}
.evenhand td,.evenhand th{padding:.15em 1em .15em 0;text-align:left}
.evenhand td{font-variant-numeric:tabular-nums}
.evenhand th{font-weight:normal;opacity:.65}
.evenhand .strong{font-weight:bold}
.evenhand .bad{color:#b3261e;font-weight:bold}
.evenhand .good{color:#1b6e3c}
.evenhand .open{color:#8a5a00}
.evenhand .dim{opacity:.65}
@media (prefers-color-scheme:dark){.evenhand .bad{color:#ff8a80}.evenhand .good{color:#7bd99a}
.evenhand .open{color:#ffcb6b}}
"""


def render(page: Page) -> str:
    """Render a page as one element with its style; everything in it is escaped."""
    return f'<style>{_STYLE}</style><div class="evenhand">{"".join(map(_shown, page))}</div>'


def document(page: Page, title: str) -> str:
    """Make a whole file that needs nothing beside itself."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    dark = "<style>:root{color-scheme:light dark}body{margin:2em}</style>"
    return f"<!doctype html><html><head>{head}{dark}</head><body>{render(page)}</body></html>"


def _shown(block: Block) -> str:
    match block:
        case Line(text, tone, indent):
            return f'<p class="{tone}" style="padding-left:{indent / 2}em">{escape(text)}</p>'
        case Grid():
            return _table(block)
        case _:
            return "<p>&nbsp;</p>"


def _table(grid: Grid) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.columns)
    rows = []
    for number, row in enumerate(grid.rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        rows.append(f'<tr class="{grid.tone(number)}">{cells}</tr>')
    title = f'<p class="strong">{escape(grid.title)}</p>' if grid.title else ""
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
