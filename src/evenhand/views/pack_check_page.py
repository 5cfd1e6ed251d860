"""The page of a checked pack has the answer first, then each thing that was looked at."""

from evenhand.findings.pack_check import PackCheck, State
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


def page(found: PackCheck, *, full: bool = False) -> list[Block]:
    """Give the blocks of a check of a pack."""
    blocks: list[Block] = [
        Line(f"{found.pack}: {found.title}", "strong"),
        Line(_MEANS[found.state], _MARKS[found.state][1]),
        GAP,
    ]
    for one in found.looked:
        mark, tone = _MARKS[one.state]
        blocks.append(Line(f"{mark} {one.name}: {one.says}", tone))
        shown = one.seen if full else one.seen[:_MOST]
        blocks += [Line(line, indent=4) for line in shown]
        if len(shown) < len(one.seen):
            blocks.append(Line(f"and {len(one.seen) - len(shown):,} more: --json", "dim", indent=4))
    return [*blocks, GAP, Line(f"SHA-256 of its evidence.json: {found.sha256}", "dim")]
