"""The probes of a reward model on the screen: what it prefers first, then the checks, the worst
first, then the rest."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.reward_bars import State

_MOST_TOPICS = 8  # the worst; the file has all
_STYLES = {State.FAILED: "red", State.OPEN: "yellow", State.PASSED: "green"}


def render(found: dict[str, Any]) -> RenderableType:
    return Group(
        _head(found),
        *(Text(f"  ✗ {line}", style="red") for line in found["prefers"]),
        *(Text(f"  ! {line}", style="yellow") for line in found["notes"]),
        _open(found["checks"]),
        _checks(found["checks"]),
        Text(),
        _described(found["described"]),
        Text(),
        _means(found["means"]),
        Text(),
        _groups("bias type", found["by_bias_type"]),
        Text(),
        _groups("topic, the worst first", found["by_topic"][:_MOST_TOPICS]),
    )


def _head(found: dict[str, Any]) -> Text:
    verdict = "passed: it may drive RLOO and PPO" if found["passed"] else "FAILED the gate"
    head = Text(verdict, style="bold green" if found["passed"] else "bold red")
    return head.append(f"  {found['pairs']} held-out pairs, {found['topics']} topics", "default")


def _open(checks: list[dict[str, Any]]) -> Text:
    names = [check["name"] for check in checks if check["state"] == State.OPEN]
    if not names:
        return Text()
    return Text(f"  ? too few topics or pairs to be sure of: {', '.join(names)}\n", style="yellow")


def _checks(checks: list[dict[str, Any]]) -> Table:
    table = Table("check", "figure (95 %)", "bar", "", box=None)
    for check in checks:
        state = State(check["state"])
        table.add_row(
            check["what"], _said(check["figure"]), check["bar"], Text(state, style=_STYLES[state])
        )
    return table


def _described(described: dict[str, Any]) -> Table:
    table = Table("without a bar", "figure (95 %)", box=None)
    for name, figure in described.items():
        said = _said(figure) if isinstance(figure, dict) else f"{figure:.3f}"
        table.add_row(name.replace("_", " "), said)
    return table


def _means(means: list[dict[str, Any]]) -> Table:
    table = Table("answer", "mean reward", box=None)
    for row in means:
        table.add_row(row["answer"], Text(f"{row['reward']:+.2f}", justify="right"))
    return table


def _groups(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title, "accuracy (95 %)", "pairs", "topics", box=None)
    for row in rows:
        table.add_row(row["name"], _said(row), str(row["n"]), str(row["topics"]))
    return table


def _said(figure: dict[str, Any]) -> str:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    if value is None:
        return f"–  {figure['undefined']}"
    if low is None:
        return f"{value:.3f} (no interval: too few topics)"
    if low == high:
        return f"{value:.2g}"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"
