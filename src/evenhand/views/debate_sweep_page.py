"""The page of a sweep of debates: an arm a row."""

from evenhand.findings.debate_sweep import DebateSweep, SweptArm
from evenhand.findings.debates import HIGH_ABOVE
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(found: DebateSweep, *, full: bool = False) -> list[Block]:
    """Give the blocks of a sweep; it has no longer form."""
    del full
    columns = ("", "roles", "rounds", "topics", "statements", f"above {HIGH_ABOVE}", "95 %",
               "pairs to train on", "held out")  # fmt: skip
    rows = tuple(_row(one) for one in found.arms)
    blocks: list[Block] = [Grid(columns, rows, title="one thing is varied at a time")]
    short = [one for one in found.arms if one.folder and one.train_pairs < one.setting.pairs]
    if short:
        said = ", ".join(f"{one.name} ({one.setting.pairs:,})" for one in short)
        blocks.append(Line(f"fewer pairs than the plan asks for: {said}", "bad"))
    blocks += [Line(f"{one.name}: {one.why}", "bad") for one in found.arms if one.why]
    return [*blocks, GAP, Line("next  train on each folder of pairs, then measure statements")]


def _row(one: SweptArm) -> tuple[str, ...]:
    setting = one.setting
    return (
        one.name,
        str(setting.roles),
        str(setting.rounds),
        f"{setting.topics:,}",
        f"{one.statements:,}",
        numbers.value(one.high.value, None),
        numbers.interval(one.high, None),
        f"{one.train_pairs:,}",
        f"{one.test_pairs:,}",
    )
