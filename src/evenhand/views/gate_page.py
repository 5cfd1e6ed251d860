"""The page of a gate has the verdict first, then every check with its numbers, then what to do."""

from collections.abc import Sequence

from evenhand.findings.gate import Gate, GateCheckResult, ItemsNeeded, Verdict
from evenhand.views import catalog, numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

MARKS: dict[Verdict, tuple[str, Tone]] = {
    "pass": ("✓ pass", "good"),
    "fail": ("✗ fail", "bad"),
    "inconclusive": ("? inconclusive", "open"),
    "error": ("! error", "bad"),
}
# How loud the checks are that did not pass, in the words of those who show them.
LEVELS: dict[Verdict, str] = {"fail": "error", "error": "error", "inconclusive": "warning"}
_MEANS: dict[Verdict, str] = {
    "pass": "Every metric is non-inferior to the baseline.",
    "fail": "A metric regressed, or is no longer checked.",
    "inconclusive": "No checked metric regressed significantly, but a loss above the margin is "
    "not ruled out for each.",
    "error": "A check could not be computed. This is not a pass.",
}


def page(gate: Gate) -> list[Block]:
    """Give the blocks of a gate."""
    tone = MARKS[gate.verdict][1]
    blocks: list[Block] = [Line(f"Gate: {gate.verdict.upper()}. {_MEANS[gate.verdict]}", tone)]
    blocks += [Line(catalog.text(note), "open") for note in gate.notes]
    ordered = gate.ordered()
    columns = ("check", "baseline", "now", "change", "95% CI", "margin", "items")
    tones = tuple(MARKS[check.verdict][1] for check in ordered)
    blocks += [GAP, Grid(columns, tuple(map(_row, ordered)), tones), *_reading(ordered), GAP]
    for check in ordered:
        blocks.append(
            Line(f"{check.name}: {catalog.text(check.says)}", MARKS[check.verdict][1], indent=2)
        )
        if check.more is not None:
            blocks.append(Line(f"{check.name}: {decides(check.more)}", indent=2))
    complete = [check for check in ordered if check.change is not None and check.early is None]
    pairs = dict.fromkeys((check.before, check.after) for check in complete)
    blocks += [GAP] if pairs else []
    for old, new in pairs:
        blocks.append(Line(f"full output: evenhand compare {old} {new} --full", "dim"))
    return blocks


def _reading(checks: Sequence[GateCheckResult]) -> list[Block]:
    """Say how to read the numbers of a gate that tested all of its items at once."""
    tested = [check for check in checks if check.change is not None]
    if not tested or any(check.early is not None for check in tested):
        return []
    lines = ["A largest loss is a one-sided 97.5% bound."]
    if len(tested) > 1:
        lines.insert(0, f"CIs are adjusted for {len(tested)} checks (Holm).")
    if any(check.measure is not None and check.measure.center is not None for check in tested):
        lines.append("The change of a bias score is the change of its distance from 0.")
    return [Line(" ".join(lines), "dim")]


def decides(more: ItemsNeeded) -> str:
    """Say how many more items would decide a check that is open, and what they cost."""
    if more.items is None:
        return "" if more.why is None else catalog.text(more.why)
    if not more.items:
        return (
            "a sample of this size decides 4 times in 5: another one may, unless the change is "
            "close to the margin"
        )
    parts = [
        None if more.calls is None else f"{more.calls:,.0f} calls",
        None if more.tokens is None else f"{more.tokens:,.0f} tokens",
        None if more.cost is None else numbers.money(more.cost, more.currency or ""),
    ]
    costs = ", ".join(part for part in parts if part) or "not counted"
    return f"about {more.items:,} more items would decide it 4 times in 5 (for this run {costs})"


def told(check: GateCheckResult) -> str:
    """Say why a check has its verdict, and what would decide one that is open."""
    says = catalog.text(check.says)
    return says if check.more is None else f"{says}\n{decides(check.more)}"


def _row(check: GateCheckResult) -> tuple[str, ...]:
    mark, change = MARKS[check.verdict][0], check.change
    where = f"{mark}  {check.name} ({check.group})" if check.group else f"{mark}  {check.name}"
    margin = "" if check.margin is None else f"{check.margin:g}"
    if change is None:
        return where, "", "", "", "", margin, ""
    return (
        where,
        numbers.value(change.before, check.measure, full=True),
        numbers.value(change.after, check.measure, full=True),
        numbers.signed(change.effect, check.measure, full=True),
        numbers.change_interval(change, check.measure, full=True),
        margin,
        f"{check.items:,}",
    )
