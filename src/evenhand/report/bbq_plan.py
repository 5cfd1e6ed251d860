"""How large a BBQ comparison must be, from variances that were measured on BBQ itself."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.statistics.planning import detectable_mean, items_needed

# Measured on the UnifiedQA predictions and their pairs; see docs/bbq.md.
SD = 0.62  # of the paired per-item change of +1/0/-1
ICC = 0.10  # of that change within a template
PER_TEMPLATE = 2  # ambiguous items a template has in the default sample
TEMPLATES = 343
# Ambiguous items of a sample, and how many of them share a template.
_SAMPLES = {
    "MABRF's sample": (55, 1),
    "StarDTox's sample": (550, 2),
    "the default sample": (686, PER_TEMPLATE),
}


def plan(
    *, detect: float, power: float, calls: float, tokens: float, price_per_million: float | None
) -> dict[str, Any]:
    ambiguous: int | None = items_needed(detect, SD, PER_TEMPLATE, ICC, power=power).n
    if (
        ambiguous is not None and ambiguous > TEMPLATES * PER_TEMPLATE
    ):  # more rows per template, and so more alike
        per_template = _rows_per_template(detect, power)
        ambiguous = per_template * TEMPLATES if per_template else None
    items = None if ambiguous is None else 2 * ambiguous
    spent = None if items is None else 2 * items * calls * tokens
    return {
        "detect": detect,
        "power": power,
        "ambiguous_items": ambiguous,
        "items": items,
        "runs": 2,
        "calls": None if items is None else 2 * items * calls,
        "tokens": spent,
        "money": None
        if spent is None or price_per_million is None
        else spent / 1e6 * price_per_million,
        "assumed": {"sd": SD, "icc": ICC, "items_per_template": PER_TEMPLATE},
        "what_samples_can_show": {
            name: detectable_mean(n, SD, shared, ICC, power=power).mde
            for name, (n, shared) in _SAMPLES.items()
        },
    }


def _rows_per_template(detect: float, power: float) -> int | None:
    """With all 343 templates in use, only more rows of each are left to draw."""
    for rows in range(PER_TEMPLATE, 86):  # BBQ has 85 ambiguous rows a template at the mean
        if detectable_mean(rows * TEMPLATES, SD, rows, ICC, power=power).mde <= detect:
            return rows
    return None


def render(found: dict[str, Any]) -> RenderableType:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    head = f"to see a change of {found['detect']:g} in s_amb with a chance of {found['power']:.0%}"
    if found["items"] is None:
        said = Text("BBQ is too small: even all its rows could not show it.", style="bold red")
        rows: list[tuple[str, str]] = []
    else:
        said = Text(head, style="bold")
        rows = [
            ("ambiguous items", f"{found['ambiguous_items']:,}"),
            ("items, both contexts", f"{found['items']:,}"),
            ("calls, two runs", f"{found['calls']:,.0f}"),
            ("tokens, two runs", f"{found['tokens']:,.0f}"),
        ]
        if found["money"] is not None:
            rows.append(("money, two runs", f"{found['money']:,.2f}"))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), value)
    shown = Table("smallest change that can be seen", "", box=None, padding=(0, 2, 0, 0))
    for name, mde in found["what_samples_can_show"].items():
        shown.add_row(f"{name} ({_SAMPLES[name][0]} ambiguous items)", f"{mde:.2f}")
    assumed = found["assumed"]
    basis = f"assumed: sd {assumed['sd']}, correlation within a template {assumed['icc']}"
    return Group(said, table, Text(""), shown, Text(basis, style="dim"))
