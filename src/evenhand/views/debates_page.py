"""The pages of debates, of a sweep of debates, and of the pairs that are made of them."""

from collections.abc import Iterator

from evenhand.findings.estimates import Estimate
from evenhand.training.debates.findings import HIGH_ABOVE, DebateReport
from evenhand.training.debates.pairs import (
    FromDebates,
    FromItems,
    FromRuns,
    Origin,
    PairsReport,
    Shortcuts,
)
from evenhand.training.debates.splits import SIDES
from evenhand.training.debates.sweep import DebateArmResult, DebateSweep
from evenhand.views import catalog, numbers, run_page
from evenhand.views.blocks import GAP, Block, Grid, Line


def page(report: DebateReport) -> list[Block]:
    """The blocks of a report on debates."""
    blocks: list[Block] = [*run_page.summary_warnings(report.summary)]
    if report.problems:
        blocks.append(Line(f"{report.debater} cannot be said to debate usefully here:", "bad"))
        blocks += [Line(line, "bad", indent=2) for line in catalog.texts(report.problems)]
    counts = tuple(f"{count:,}" for count in report.distribution.values())
    scores = Grid(("bias score", *report.distribution), (("statements", *counts),))
    return [*blocks, Grid(("", ""), tuple(_rows(report))), GAP, scores, GAP, _means(report)]


def _rows(report: DebateReport) -> list[tuple[str, str]]:
    rounds, counts = report.rounds, report.summary
    rows = [
        ("debaters, referee", f"{report.debater}, {report.referee}"),
        ("debates", f"{counts.answered:,} of {counts.planned:,}"),
        ("statements", f"{report.statements:,}"),
        (f"score above {HIGH_ABOVE}", _said(report.high)),
        ("topics with both kinds", f"{report.topics_with_both:,}"),
        ("rounds with one score for all", f"{rounds.all_equal:,} of {rounds.rounds:,}"),
        ("rounds without a ranking", f"{rounds.unranked:,}"),
        ("ranking against the scores", f"{rounds.rank_against_score:,}"),
    ]
    agreed = report.agreement
    if agreed is not None:
        alpha = agreed.ordinal_alpha
        text = f"undefined: {agreed.undefined}" if alpha is None else f"ordinal alpha {alpha:.2f}"
        rows.append(("referee with itself", text))
    return [*rows, ("cost", numbers.paid(counts.money))]


def _means(report: DebateReport) -> Grid:
    estimates = (*report.mean_by_round, *(debate_type.mean for debate_type in report.by_type))
    rows = tuple((estimate.name, _said(estimate)) for estimate in estimates)
    return Grid(("0 to 10, lower is less biased", "mean score"), rows)


def _said(estimate: Estimate) -> str:
    interval = numbers.interval(estimate, None, full=True)
    return f"{numbers.value(estimate.value, None, full=True)} ({interval})"


def sweep_page(sweep: DebateSweep) -> list[Block]:
    """Give the blocks of a sweep."""
    columns = ("", "roles", "rounds", "topics", "statements", f"above {HIGH_ABOVE}", "95% CI",
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


_TELLING = 0.1  # our choice: a rule without a look at the content, right so far off a coin's half


def pairs_page(report: PairsReport) -> list[Block]:
    """The blocks of a report on pairs."""
    names = sorted({name for side in SIDES for name in report.pairs[side]})
    rows = [(name, *(f"{report.pairs[side].get(name, 0):,}" for side in SIDES)) for name in names]
    return [Grid(("bias type", *SIDES), tuple(rows)), *map(Line, _lines(report))]


def _lines(report: PairsReport) -> Iterator[str]:
    yield f"topics: {report.topics['train']:,} to train on, {report.topics['test']:,} held out"
    yield from _origin(report.origin)
    if report.lengths_dropped:
        yield f"{report.lengths_dropped:,} pairs dropped to match the lengths"
    for side, shortcuts in report.shortcuts.items():
        if shortcuts is not None:
            yield from _shortcuts(side, shortcuts)


def _origin(origin: Origin) -> Iterator[str]:
    match origin:
        case FromDebates():
            yield from _statements(origin)
        case FromRuns(items=items):
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in items.not_used.items())
            yield (
                f"items used: {items.used:,} repaired, {items.used_to_keep:,} accepted at once; "
                f"not used: {reasons or 'none'}"
            )
        case FromItems(items=rows):
            yield f"items read: {rows.read:,}; without a blank or an option: {rows.unusable:,}"


def _statements(origin: FromDebates) -> Iterator[str]:
    statements = origin.statements
    yield (
        f"statements: {statements.high:,} high, {statements.low:,} low; "
        f"{statements.near_duplicates_dropped:,} near-duplicates and "
        f"{statements.openers_dropped:,} for their opener dropped"
    )
    yield f"low statements to fine-tune on, in a pair or not: {statements.low_to_train:,}"
    yield (
        f"openers like “As a …”: in {_percent(statements.with_opener['high'])} of the high ones, "
        f"in {_percent(statements.with_opener['low'])} of the low ones; "
        f"--openers {origin.pairing.openers}"
    )
    possible = ", ".join(f"{name} {count:,}" for name, count in origin.possible_pairs.items())
    yield f"possible pairs: {possible}"
    yield f"topics without a pair: {len(origin.topics_without_pair):,}"


def _shortcuts(side: str, shortcuts: Shortcuts) -> Iterator[str]:
    yield (
        f"{side}: {shortcuts.words.chosen:.1f} words chosen, "
        f"{shortcuts.words.rejected:.1f} rejected; "
        f"“shorter wins” is right for {_percent(shortcuts.shorter_wins)}"
        f"{_warning(shortcuts.shorter_wins, 'try --match-lengths')}"
    )
    if shortcuts.later_round_wins is not None:
        yield (
            f"{side}: “later round wins” is right for {_percent(shortcuts.later_round_wins)}"
            f"{_warning(shortcuts.later_round_wins, 'try --strategy same_round')}"
        )
    if shortcuts.abstention_wins is not None:
        yield (
            f"{side}: {_percent(shortcuts.abstains.chosen)} of the chosen say “unknown”; "
            f"“unknown wins” is right for {_percent(shortcuts.abstention_wins)}"
            f"{_warning(shortcuts.abstention_wins, 'add runs with other answers accepted')}"
        )


def _warning(share: float, then: str) -> str:
    return f" – a reward model can learn that; {then}" if abs(share - 0.5) > _TELLING else ""


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
