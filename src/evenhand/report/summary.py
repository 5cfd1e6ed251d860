"""A run in a few lines: failures first, then what changed, then what it cost."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.store import RunReader

COVERAGE_FLOOR = 0.95  # ours: below it a run's results are not to be quoted without saying so


def summary(run: RunReader) -> dict[str, Any]:
    """The run's numbers, for `--json` and for the table below."""
    totals, record = run.totals(), run.record
    planned = record.source["items"]
    failed = sum(totals.failed.values())
    return {
        "run": str(run.path),
        "method": record.method,
        "cast": record.cast,
        "seed": record.seed,
        "created": record.created,
        "planned": planned,
        "answered": totals.answered,
        "failed": failed,
        "failed_by_reason": totals.failed,
        "not_run": planned - totals.items,
        "coverage": totals.answered / planned if planned else None,
        "changed": totals.changed,
        "calls": totals.calls,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "items_without_token_count": totals.tokens_unknown,
    }


def below_floor(numbers: dict[str, Any]) -> bool:
    """Whether too much is missing; `numbers` holds `coverage`."""
    return numbers["coverage"] is not None and numbers["coverage"] < COVERAGE_FLOOR


def render(numbers: dict[str, Any]) -> RenderableType:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _rows(numbers):
        table.add_row(Text(name, style="dim"), value)
    warnings = [Text(line, style="bold red") for line in _warnings(numbers)]
    return Group(*warnings, table)


def _warnings(numbers: dict[str, Any]) -> list[str]:
    lines = []
    if below_floor(numbers):
        lines.append(
            f"Coverage {numbers['coverage']:.1%} is below {COVERAGE_FLOOR:.0%}: "
            "what failed may differ from what did not."
        )
    for reason, count in numbers["failed_by_reason"].items():
        lines.append(f"{count} failed: {reason}")
    return lines


def _rows(numbers: dict[str, Any]) -> list[tuple[str, str]]:
    method = numbers["method"]
    settings = ", ".join(f"{key}={value}" for key, value in method["settings"].items())
    tokens = f"{numbers['prompt_tokens']:,} in, {numbers['completion_tokens']:,} out"
    if numbers["items_without_token_count"]:
        tokens += f" (not counted by the endpoint for {numbers['items_without_token_count']} items)"
    coverage = numbers["coverage"]
    done = numbers["answered"] + numbers["failed"]
    return [
        ("run", numbers["run"]),
        ("method", f"{method['name']}" + (f" ({settings})" if settings else "")),
        ("model", str(numbers["cast"]["default"]["model"])),
        ("items", f"{numbers['planned']:,} planned, {numbers['not_run']:,} not run yet"),
        ("answered", f"{numbers['answered']:,}"),
        ("failed", f"{numbers['failed']:,}"),
        ("coverage", "no items" if coverage is None else f"{coverage:.1%}"),
        ("changed by the method", f"{numbers['changed']:,} of {numbers['answered']:,}"),
        ("calls", _per_item(numbers["calls"], done)),
        ("tokens", tokens),
    ]


def _per_item(calls: int, done: int) -> str:
    return f"{calls:,}" + (f" ({calls / done:.2f} an item)" if done else "")
