"""The page of a dry run: what will be asked, worked out and not tried."""

from evenhand.findings.dry_run import CHARACTERS_A_TOKEN, DryRun
from evenhand.views import numbers
from evenhand.views.blocks import Block, Grid, Line


def page(dry_run: DryRun, *, full: bool = False) -> list[Block]:
    """The blocks of a dry run; there is no longer form of it."""
    del full
    items = sum(run.items for run in dry_run.runs)
    calls = "an unknown number of" if dry_run.calls is None else _range(dry_run.calls)
    blocks: list[Block] = [Line(_head(len(dry_run.runs), items, calls), "strong")]
    if dry_run.runs:
        blocks.append(_grid(dry_run))
        blocks += [Line(note, "dim") for note in _notes(dry_run)]
    blocks += [Line(f"Cannot be run: {name}: {why}", "bad")
               for name, why in dry_run.cannot_run.items()]  # fmt: skip
    if dry_run.waiting:
        names = ", ".join(dry_run.waiting)
        blocks.append(Line(f"Not counted, its items come from another run: {names}"))
    if dry_run.played_back:
        blocks.append(
            Line(f"Played back from another run, no calls: {', '.join(dry_run.played_back)}")
        )
    return blocks


def _head(runs: int, items: int, calls: str) -> str:
    if not runs:
        return "Dry run: nothing was asked, and there is no run to make."
    return (
        f"Dry run: nothing was asked. {runs} run{'s' * (runs > 1)}, {items:,} items, {calls} calls."
    )


def _grid(dry_run: DryRun) -> Grid:
    rows = [
        (
            run.name,
            run.method,
            f"{run.items:,}",
            _range(run.calls) + ("*" if run.declared_for_other_settings else ""),
            _range(run.prompt_tokens),
            _range(run.completion_tokens),
            *(() if dry_run.currency is None else (_money(run.cost, dry_run.currency),)),
            ", ".join(run.roles) or "nobody",
        )
        for run in dry_run.runs
    ]
    cost = () if dry_run.currency is None else ("cost",)
    columns = ("run", "method", "items", "calls", "tokens in", "tokens out", *cost, "who is asked")
    return Grid(columns, tuple(rows))


def _notes(dry_run: DryRun) -> list[str]:
    notes = [
        f"Assumed: {CHARACTERS_A_TOKEN} characters a token; every prompt of an item as long as its "
        f"first; every reply at its limit ({dry_run.max_tokens:,} tokens, --max-tokens). Later "
        "prompts are often longer, replies mostly shorter.",
        "Calls are those that each method declares, whoever plays its roles.",
    ]
    if any(run.declared_for_other_settings for run in dry_run.runs):
        notes.append("* Declared for the default settings of the method; here it may be other.")
    if dry_run.batch:
        priced = "" if dry_run.currency is None else ", at the price of batches (batch_factor)"
        notes.append(f"Asked in batches{priced}: one batch a round of the method.")
    if dry_run.currency is None:
        notes.append("No cost: give a price file (--prices FILE).")
    elif any(run.cost is None for run in dry_run.runs):
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
