"""The page of a sweep of debates: an arm a row."""

from evenhand.training.debates.findings import HIGH_ABOVE
from evenhand.training.debates.sweep import DebateArmResult, DebateSweep
from evenhand.views import numbers
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(sweep: DebateSweep, *, full: bool = False) -> list[Block]:
    """Give the blocks of a sweep; it has no longer form."""
    del full
    columns = ("", "roles", "rounds", "topics", "statements", f"above {HIGH_ABOVE}", "95 %",
               "pairs to train on", "held out")  # fmt: skip
    rows = tuple(_row(arm) for arm in sweep.arms)
    blocks: list[Block] = [Grid(columns, rows, title="one thing is varied at a time")]
    short = [arm for arm in sweep.arms if arm.folder and arm.train_pairs < arm.setting.pairs]
    if short:
        arms = ", ".join(f"{arm.name} ({arm.setting.pairs:,})" for arm in short)
        blocks.append(Line(f"fewer pairs than the plan asks for: {arms}", "bad"))
    blocks += [Line(f"{arm.name}: {arm.why}", "bad") for arm in sweep.arms if arm.why]
    return [*blocks, GAP, Line("next  train on each folder of pairs, then measure statements")]


def _row(arm: DebateArmResult) -> tuple[str, ...]:
    setting = arm.setting
    return (
        arm.name,
        str(setting.roles),
        str(setting.rounds),
        f"{setting.topics:,}",
        f"{arm.statements:,}",
        numbers.value(arm.high.value, None),
        numbers.interval(arm.high, None),
        f"{arm.train_pairs:,}",
        f"{arm.test_pairs:,}",
    )
