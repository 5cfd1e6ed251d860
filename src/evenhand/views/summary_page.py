"""The page of a run's summary: failures first, then what changed, then what it cost."""

from evenhand.findings.cost import Money
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.findings.report import system_prompt
from evenhand.findings.summary import Summary
from evenhand.views import numbers, remedy_page
from evenhand.views.blocks import Block, Grid, Line


def page(summary: Summary, *, full: bool = False) -> list[Block]:
    """The blocks of a summary; there is no longer form of it."""
    del full
    paid = Line(f"cost: {cost(summary.money)}")
    done: list[Line] = []
    if summary.remedy is not None:
        done = remedy_page.lines(summary.remedy)
    elif summary.outcomes:
        done = [Line(remedy_page.counts(summary.outcomes))]
    return [*warnings(summary), *done, Grid(("", ""), tuple(_rows(summary))), paid]


def warnings(summary: Summary) -> list[Line]:
    """Write what is missing, and why."""
    lines = []
    if summary.coverage.below_floor:
        lines.append(
            f"Coverage {summary.coverage.percent} is below {COVERAGE_FLOOR:.0%}: "
            "what failed may differ from what did not."
        )
    lines += [f"{count:,} failed: {reason}" for reason, count in summary.failed_by_reason.items()]
    return [Line(line, "bad") for line in lines]


def cost(money: Money) -> str:
    """Write what was paid, in words."""
    if money.cost is None or money.currency is None:
        return "no price file (--prices FILE)"
    return numbers.money(money.cost, money.currency)


def _rows(summary: Summary) -> list[tuple[str, str]]:
    method = summary.method
    settings = ", ".join(f"{key}={value}" for key, value in method["settings"].items())
    tokens = f"{summary.prompt_tokens:,} in, {summary.completion_tokens:,} out"
    if summary.thinking_tokens:
        tokens += f" ({summary.thinking_tokens:,} of them thinking)"
    if summary.items_without_token_count:
        tokens += f" (not counted by the endpoint for {summary.items_without_token_count:,} items)"
    share = summary.coverage.coverage
    return [
        ("run", summary.run),
        ("method", f"{method['name']}" + (f" ({settings})" if settings else "")),
        ("model", str(summary.cast["default"]["model"])),
        *([("system prompt", prompt)] if (prompt := system_prompt(summary.cast)) else []),
        ("items", _items(summary)),
        ("answered", f"{summary.answered:,}"),
        ("failed", f"{summary.failed:,}"),
        ("coverage", "no items" if share is None else f"{share:.1%}"),
        ("changed by the method", f"{summary.changed:,} of {summary.answered:,}"),
        ("calls", _per_item(summary.calls, summary.answered + summary.failed)),
        ("tokens", tokens),
        *([("not accepted", "; ".join(summary.adapted))] if summary.adapted else []),
        *([("tags taken off", f"{summary.tags_taken_off:,}")] if summary.tags_taken_off else []),
    ]


def _items(summary: Summary) -> str:
    if summary.open:
        return f"{summary.planned:,} so far; the run is open, and more may come"
    planned = f"{summary.planned:,} planned, {summary.not_run:,}"
    if summary.may_stop:
        return f"{planned} not asked; it may stop early: evenhand runs report {summary.run}"
    return f"{planned} not run yet"


def _per_item(calls: int, done: int) -> str:
    return f"{calls:,}" + (f" ({calls / done:.2f} an item)" if done else "")
