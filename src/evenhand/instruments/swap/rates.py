"""Red lines on how often the decision that --chosen names is given, before and after a method."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.findings.comparison import Comparison
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.estimates import Change, RedLine
from evenhand.instruments._contract import SCORED
from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.answers import named, wanted
from evenhand.instruments.swap.contrasts import MATTERS
from evenhand.statistics.sign_flips import p_two_sided

_WORDS = InstrumentWords(__package__)
WITHOUT = pl.col("role") == "none"
# Each line with whose answers it is about, in words and as rows, and whether a rise crosses it too.
# A remedy has no reason to change the answer without a label. Under labels it has: our choice there
# is that a fall crosses and a rise is left to the reader, since --chosen names what is hoped for.
_LINES = {"rate": ("without", WITHOUT, True), "rate_labelled": ("with", ~WITHOUT, False)}


def rate_lines(
    comparison: Comparison,
    sources: tuple[Mapping[str, Any], Mapping[str, Any]],
    answers: tuple[pl.DataFrame, pl.DataFrame],
) -> tuple[RedLine, ...]:
    """Say whether the decision that is named is given as often as before: a method that says no to
    everybody treats all alike. Nothing where neither run names one."""
    first, last = map(named, sources)
    if first is None and last is None:
        return ()
    if first != last:
        chosen = [f"--chosen {choice}" if choice else "no --chosen" for choice in (first, last)]
        message = _WORDS("different_decisions", before=chosen[0], after=chosen[1])
        return tuple(RedLine(name=name, state="open", says=message) for name in _LINES)
    unknown = ""
    if wanted(sources[0], answers[0]["decision"]) is None:
        unknown = _WORDS("not_named_before", decision=str(first)[:40])
    lines = []
    for name, (whose, rows, either) in _LINES.items():
        p, missing = p_if_filled(answers[0].filter(rows), answers[1].filter(rows), either=either)
        line = rate_line(comparison[name], whose, p, missing, unknown)
        lines.append(line)
    return tuple(lines)


def p_if_filled(before: pl.DataFrame, after: pl.DataFrame, *, either: bool) -> tuple[float, int]:
    """Give the p-value of a fall, or of a change either way, over pairs of answers with the missing
    ones filled so that it is largest, and how many pairs lack an answer. Sign flips of sums are
    monotone, so that one more missing answer never shows what was not shown."""
    value = pl.when(pl.col("state") == SCORED).then(pl.col("named")).cast(pl.Float64)
    pairs = before.select("item_id", "cluster", old=value).join(
        after.select("item_id", new=value), on="item_id"
    )
    old, new = pl.col("old"), pl.col("new")
    sums = (
        pairs.group_by("cluster")
        .agg(
            low=(new.fill_null(0.0) - old.fill_null(1.0)).sum(),
            high=(new.fill_null(1.0) - old.fill_null(0.0)).sum(),
            missing=(old.is_null() | new.is_null()).sum(),
        )
        .sort("cluster")
    )
    if sums.is_empty():
        return 1.0, 0
    fell, rose = -sums["high"].to_numpy(), sums["low"].to_numpy()
    return p_two_sided(fell, rose if either else fell), int(sums["missing"].sum())


def rate_line(change: Change, whose: str, p: float, missing: int, unknown: str = "") -> RedLine:
    """Say the state of one line. Crossed: a change is shown, however the missing answers came out.
    Kept: the interval lies within what matters, none is missing, and some answer of the run before
    names the decision."""
    description = _WORDS("rate_not_compared", why=change.undefined)
    if change.difference is not None:
        moved = f"{100 * change.difference:+.1f}"
        description = _WORDS("rate_moved", whose=whose, moved=moved)
    if p <= ALPHA:
        lost = _WORDS("however_missing", missing=missing) if missing else ""
        return RedLine(name=change.name, state="crossed", says=description + lost)
    if change.difference is None or unknown:
        return RedLine(name=change.name, state="open", says=unknown or description)
    ends = [abs(end) for end in (change.low, change.high) if end is not None]
    if len(ends) > 1 and not missing and change.bounds is None and max(ends) <= MATTERS:
        return RedLine(name=change.name, state="kept", says=description)
    message = _WORDS("rate_open", moved=description, matters=100 * MATTERS)
    return RedLine(name=change.name, state="open", says=message)
