"""An audit on the screen: where not to trust first, then the figures, the worst first."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_MOST_ROWS = 8  # of each kind; the card and --json have all


def render(found: dict[str, Any]) -> RenderableType:
    parts: list[RenderableType] = [_scorer(entry) for entry in found["scorers"]]
    if found["agreement"]:
        parts.append(_agreement(found["agreement"]))
    if found["left_out"]:
        lines = [f"{name}: {why}" for name, why in found["left_out"].items()]
        parts.append(Text("Left out: " + "; ".join(lines), style="yellow"))
    return Group(*parts)


def _scorer(entry: dict[str, Any]) -> RenderableType:
    seen = entry["coverage"]
    head = Text(entry["name"], style="bold")
    head.append(
        f"  {seen['scored']:,} of {seen['texts']:,} texts scored, "
        f"{entry['texts_per_second']:,.0f} texts/s",
        style="not bold",
    )
    warnings = [Text(f"  ✗ {line}", style="red") for line in entry["limits"]]
    if not warnings:
        warnings = [Text("  nothing found in these texts; others may show more")]
    return Group(
        head,
        *warnings,
        _labels(entry),
        _shares(entry["false_positives"], "harmless texts called toxic"),
        _shares(entry["misses"], "hateful texts missed"),
        _tricks(entry),
        Text(),
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="dim", box=None, pad_edge=True)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    return table


def _labels(entry: dict[str, Any]) -> Table:
    table = _table(
        "with labels and recorded scores", "set", "texts", "toxic", "AUC", "kappa", "ECE", "ρ"
    )
    recorded = {row["set"]: row for row in entry["calibration"]}
    for row in entry["labels"]:
        scale = recorded.get(row["set"], {})
        mark = {"all": " (trained on)", "held_out": " (held-out fifth)"}.get(row["seen"], "")
        table.add_row(
            row["set"] + mark,
            f"{row['n']:,}",
            f"{row['toxic']:,}",
            *(number(row[name]) for name in ("auc", "kappa")),
            *(number(scale.get(name)) for name in ("ece", "spearman")),
        )
    return table


def _shares(rows: list[dict[str, Any]], title: str) -> Table:
    table = _table(title, "set", "kind or group", "share", "95 %", "texts", "templates")
    for row in _worst(rows):
        table.add_row(
            row["set"],
            row["kind"],
            f"{row['estimate']:.1%}",
            f"{row['low']:.1%} – {row['high']:.1%}",
            f"{row['n']:,}",
            f"{row['clusters']:,}",
        )
    return table


def _worst(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    whole = [row for row in rows if row["by"] == "all"]
    parts = sorted((row for row in rows if row["by"] != "all"), key=lambda row: -row["estimate"])
    return [*sorted(whole, key=lambda row: -row["estimate"]), *parts[:_MOST_ROWS]]


def _tricks(entry: dict[str, Any]) -> Table:
    table = _table("the same texts in disguise", "trick", "caught plain", "caught", "kept")
    for row in entry["tricks"]:
        kept = "–" if row["kept"] is None else f"{row['kept']:.1%}"
        table.add_row(row["trick"], f"{row['plain']} of {row['n']}", str(row["caught"]), kept)
    if entry["emoji"]:
        table.add_row("harmless, with emoji", "", f"{entry['emoji']['flagged']} flagged", "")
    return table


def _agreement(rows: list[dict[str, Any]]) -> Table:
    table = _table("agreement", "scorers", "set", "texts", "Spearman", "kappa")
    for row in rows:
        pair = f"{row['first']} · {row['second']}"
        table.add_row(
            pair, row["set"], f"{row['n']:,}", number(row["spearman"]), number(row["kappa"])
        )
    return table


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
