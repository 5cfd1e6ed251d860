"""The page of a dry run: what will be asked, worked out and not tried."""

from evenhand.findings.dry_run import CHARACTERS_A_TOKEN, DryRun
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line


def page(found: DryRun, *, full: bool = False) -> list[Block]:
    """The blocks of a dry run; there is no longer form of it."""
    del full
    items = sum(one.items for one in found.runs)
    calls = "an unknown number of" if found.calls is None else _range(found.calls)
    blocks: list[Block] = [Line(_head(len(found.runs), items, calls), "strong")]
    if found.runs:
        blocks.append(_grid(found))
        blocks += [Line(note, "dim") for note in _notes(found)]
    blocks += [Line(f"Cannot be run: {name}: {why}", "bad")
               for name, why in found.cannot_run.items()]  # fmt: skip
    if found.waiting:
        said = ", ".join(found.waiting)
        blocks.append(Line(f"Not counted, its items come from another run: {said}"))
    if found.played_back:
        blocks.append(
            Line(f"Played back from another run, no calls: {', '.join(found.played_back)}")
        )
    return blocks


def _head(runs: int, items: int, calls: str) -> str:
    if not runs:
        return "Dry run: nothing was asked, and there is no run to make."
    return (
        f"Dry run: nothing was asked. {runs} run{'s' * (runs > 1)}, {items:,} items, {calls} calls."
    )


def _grid(found: DryRun) -> Grid:
    rows = [
        (
            one.name,
            one.method,
            f"{one.items:,}",
            _range(one.calls) + ("*" if one.declared_for_other_settings else ""),
            _range(one.prompt_tokens),
            _range(one.completion_tokens),
            *(() if found.currency is None else (_money(one.cost, found.currency),)),
            ", ".join(one.roles) or "nobody",
        )
        for one in found.runs
    ]
    cost = () if found.currency is None else ("cost",)
    columns = ("run", "method", "items", "calls", "tokens in", "tokens out", *cost, "who is asked")
    return Grid(columns, tuple(rows))


def _notes(found: DryRun) -> list[str]:
    notes = [
        f"Assumed: {CHARACTERS_A_TOKEN} characters a token; every prompt of an item as long as its "
        f"first; every reply at its limit ({found.reply_tokens:,} tokens, --reply-tokens). Later "
        "prompts are often longer, replies mostly shorter.",
        "Calls are those that each method declares, whoever plays its roles.",
    ]
    if any(one.declared_for_other_settings for one in found.runs):
        notes.append("* Declared for the default settings of the method; here it may be other.")
    if found.currency is None:
        notes.append("No cost: give a price file (--prices FILE).")
    elif any(one.cost is None for one in found.runs):
        notes.append("No cost where no model is named (--model).")
    notes.append("--pilot N asks N real items, and forecasts with intervals from them.")
    return notes


def _range(ends: tuple[int, int] | None) -> str:
    if ends is None:
        return "not known"
    low, high = ends
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _money(ends: tuple[float, float] | None, currency: str | None) -> str:
    if ends is None or currency is None:
        return "not known"
    low, high = (numbers.money(end, currency) for end in ends)
    return low if low == high else f"{low} to {high}"
