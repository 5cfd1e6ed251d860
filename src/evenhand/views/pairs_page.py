"""The page of a folder of pairs: how many there are, what was left out, what gives them away."""

from collections.abc import Iterator

from evenhand.training.debates.pairs import (
    FromDebates,
    FromItems,
    FromRuns,
    Origin,
    PairsReport,
    Shortcuts,
)
from evenhand.training.debates.splits import SIDES
from evenhand.views.blocks import Block, Grid, Line

_TELLING = 0.1  # our choice: a rule without a look at the content, right so far off a coin's half


def page(report: PairsReport, *, full: bool = False) -> list[Block]:
    """The blocks of a report on pairs; there is no longer form of it."""
    del full
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
            yield f"items used: {items.used:,}; not used: {reasons or 'none'}"
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


def _warning(share: float, then: str) -> str:
    return f" – a reward model can learn that; {then}" if abs(share - 0.5) > _TELLING else ""


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
