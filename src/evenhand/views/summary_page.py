"""The page of a run's summary: failures first, then what changed, then what it cost."""

from evenhand.findings.cost import Money
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.findings.report import system_prompt
from evenhand.findings.summary import Summary
from evenhand.views import numbers, remedy_page
from evenhand.views.blocks import Block, Grid, Line


def page(found: Summary, *, full: bool = False) -> list[Block]:
    """The blocks of a summary; there is no longer form of it."""
    del full
    paid = Line(f"cost: {cost(found.money)}")
    done: list[Line] = []
    if found.remedy is not None:
        done = remedy_page.lines(found.remedy)
    elif found.outcomes:
        done = [Line(remedy_page.counts(found.outcomes))]
    return [*warnings(found), *done, Grid(("", ""), tuple(_rows(found))), paid]


def warnings(found: Summary) -> list[Line]:
    """Write what is missing, and why."""
    lines = []
    if found.coverage.below_floor:
        lines.append(
            f"Coverage {found.coverage.percent} is below {COVERAGE_FLOOR:.0%}: "
            "what failed may differ from what did not."
        )
    lines += [f"{count:,} failed: {reason}" for reason, count in found.failed_by_reason.items()]
    return [Line(line, "bad") for line in lines]


def cost(money: Money) -> str:
    """Write what was paid, in words."""
    if money.cost is None or money.currency is None:
        return "no price file (--prices FILE)"
    return numbers.money(money.cost, money.currency)


def _rows(found: Summary) -> list[tuple[str, str]]:
    method = found.method
    settings = ", ".join(f"{key}={value}" for key, value in method["settings"].items())
    tokens = f"{found.prompt_tokens:,} in, {found.completion_tokens:,} out"
    if found.items_without_token_count:
        tokens += f" (not counted by the endpoint for {found.items_without_token_count:,} items)"
    share = found.coverage.coverage
    return [
        ("run", found.run),
        ("method", f"{method['name']}" + (f" ({settings})" if settings else "")),
        ("model", str(found.cast["default"]["model"])),
        *([("system prompt", prompt)] if (prompt := system_prompt(found.cast)) else []),
        ("items", _items(found)),
        ("answered", f"{found.answered:,}"),
        ("failed", f"{found.failed:,}"),
        ("coverage", "no items" if share is None else f"{share:.1%}"),
        ("changed by the method", f"{found.changed:,} of {found.answered:,}"),
        ("calls", _per_item(found.calls, found.answered + found.failed)),
        ("tokens", tokens),
        *([("tags taken off", f"{found.tags_taken_off:,}")] if found.tags_taken_off else []),
    ]


def _items(found: Summary) -> str:
    if found.open:
        return f"{found.planned:,} so far; the run is open, and more may come"
    asked = f"{found.planned:,} planned, {found.not_run:,}"
    if found.may_stop:
        return f"{asked} not asked; it may stop early: evenhand runs report {found.run}"
    return f"{asked} not run yet"


def _per_item(calls: int, done: int) -> str:
    return f"{calls:,}" + (f" ({calls / done:.2f} an item)" if done else "")
