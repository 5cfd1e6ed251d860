"""The page of a gate has the verdict first, then every check with its numbers, then what to do."""

from evenhand.findings.gate import WORST_FIRST, Checked, Gate, Verdict
from evenhand.findings.gate_size import More
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line, Tone

MARKS: dict[Verdict, tuple[str, Tone]] = {
    "pass": ("✓ pass", "good"),
    "fail": ("✗ fail", "bad"),
    "open": ("? open", "open"),
    "broken": ("! broken", "bad"),
}
# How loud the checks are that did not pass, in the words of those who show them.
LEVELS: dict[Verdict, str] = {"fail": "error", "broken": "error", "open": "warning"}
_MEANS: dict[Verdict, str] = {
    "pass": "Every number is shown to be no worse than its margin allows.",
    "fail": "Something is shown to be worse than the baseline, or is no longer checked.",
    "open": "Nothing is shown to be worse, and not everything is shown to be within its margin.",
    "broken": "There is nothing to judge by, which is no pass.",
}


def page(found: Gate, *, full: bool = False) -> list[Block]:
    """Give the blocks of a gate; there is no longer form of it."""
    del full
    tone = MARKS[found.verdict][1]
    blocks: list[Block] = [Line(f"Gate: {found.verdict.upper()}. {_MEANS[found.verdict]}", tone)]
    blocks += [Line(note, "open") for note in found.notes]
    ordered = sorted(found.checks, key=lambda one: WORST_FIRST.index(one.verdict))
    columns = ("check", "baseline", "now", "change", "95 %", "margin", "items")
    tones = tuple(MARKS[one.verdict][1] for one in ordered)
    blocks += [GAP, Grid(columns, tuple(map(_row, ordered)), tones), GAP]
    for one in ordered:
        blocks.append(Line(f"{one.name}: {one.says}", MARKS[one.verdict][1], indent=2))
        if one.more is not None:
            blocks.append(Line(f"{one.name}: {decides(one.more)}", indent=2))
    whole = [one for one in ordered if one.change is not None and one.early is None]
    pairs = dict.fromkeys((one.before, one.after) for one in whole)
    blocks += [GAP] if pairs else []
    for old, new in pairs:
        blocks.append(Line(f"all of it: evenhand compare {old} {new} --full", "dim"))
    return blocks


def decides(more: More) -> str:
    """Say how many more items would decide a check that is open, and what they cost."""
    if more.items is None:
        return more.why
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
    costs = ", ".join(one for one in parts if one) or "not counted"
    return f"about {more.items:,} more items would decide it 4 times in 5 (for this run {costs})"


def told(one: Checked) -> str:
    """Say why a check has its verdict, and what would decide one that is open."""
    return one.says if one.more is None else f"{one.says}\n{decides(one.more)}"


def _row(one: Checked) -> tuple[str, ...]:
    mark, change = MARKS[one.verdict][0], one.change
    where = f"{mark}  {one.name} ({one.group})" if one.group else f"{mark}  {one.name}"
    margin = "" if one.margin is None else f"{one.margin:g}"
    if change is None:
        return where, "", "", "", "", margin, ""
    return (
        where,
        numbers.value(change.before, one.measure, full=True),
        numbers.value(change.after, one.measure, full=True),
        numbers.signed(change.effect, one.measure, full=True),
        numbers.change_interval(change, one.measure, full=True),
        margin,
        f"{one.items:,}",
    )
