"""The page of a checked pack has the answer first, then each thing that was looked at."""

from evenhand.findings.pack_manifest import PackCheck, State
from evenhand.views import catalog
from evenhand.views.blocks import GAP, Block, Line, Tone

_MARKS: dict[State, tuple[str, Tone]] = {
    "holds": ("✓", "good"), "differs": ("✗", "bad"), "open": ("?", "open"),
}  # fmt: skip
_MEANS: dict[State, str] = {
    "holds": "Everything in it is as it was when it was packed, and its figures were repeated.",
    "differs": "It is NOT what was packed, or its figures do not follow from its runs.",
    "open": "Nothing differs, but not everything could be looked at.",
}
_MOST = 20  # our choice, in lines; --json has all


def page(check: PackCheck, *, full: bool = False) -> list[Block]:
    """Give the blocks of a check of a pack."""
    blocks: list[Block] = [
        Line(f"{check.pack}: {check.title}", "strong"),
        Line(_MEANS[check.state], _MARKS[check.state][1]),
        GAP,
    ]
    for result in check.looked:
        mark, tone = _MARKS[result.state]
        blocks.append(Line(f"{mark} {result.name}: {catalog.text(result.says)}", tone))
        lines = result.seen if full else result.seen[:_MOST]
        blocks += [Line(line, indent=4) for line in catalog.texts(lines)]
        if len(lines) < len(result.seen):
            blocks.append(
                Line(f"and {len(result.seen) - len(lines):,} more: --json", "dim", indent=4)
            )
    return [*blocks, GAP, Line(f"SHA-256 of its evidence.json: {check.sha256}", "dim")]
