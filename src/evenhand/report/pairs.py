"""What a folder of pairs holds, for the screen."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

# Ours: a rule without a look at the content that is right so often is worth a control.
_TELLING = 0.6


def render(report: Mapping[str, Any]) -> RenderableType:
    pairs = report["pairs"]
    table = Table(box=None, pad_edge=False)
    table.add_column("bias type")
    table.add_column("train", justify="right")
    table.add_column("test", justify="right")
    for name in sorted({*pairs["train"], *pairs["test"]}):
        counts = (f"{pairs[side].get(name, 0):,}" for side in ("train", "test"))
        table.add_row(name, *counts)
    return Group(table, *map(Text, _lines(report)))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    topics = report["topics"]
    yield f"topics: {topics['train']:,} to train on, {topics['test']:,} held out"
    yield from _statements(report)
    yield from _items(report)
    if report["lengths_dropped"]:
        yield f"{report['lengths_dropped']:,} pairs dropped to match the lengths"
    for side, found in report["shortcuts"].items():
        if found:
            yield from _shortcuts(side, found)


def _statements(report: Mapping[str, Any]) -> Iterator[str]:
    if "statements" not in report:
        return
    told = report["statements"]
    yield (
        f"statements: {told['high']:,} high, {told['low']:,} low; "
        f"{told['near_duplicates_dropped']:,} near-duplicates and {told['openers_dropped']:,} "
        "for their opener dropped"
    )
    shares = told["with_opener"]
    yield (
        f"openers like “As a …”: in {_percent(shares['high'])} of the high ones, in "
        f"{_percent(shares['low'])} of the low ones; --openers {report['pairing']['openers']}"
    )
    possible = ", ".join(f"{name} {count:,}" for name, count in report["possible_pairs"].items())
    yield f"possible pairs: {possible}"
    yield f"topics without a pair: {len(report['topics_without_pair']):,}"


def _items(report: Mapping[str, Any]) -> Iterator[str]:
    items = report.get("items", {})
    if "not_used" in items:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in items["not_used"].items())
        yield f"items used: {items['used']:,}; not used: {reasons or 'none'}"
    elif items:
        yield f"items read: {items['read']:,}; without a blank or an option: {items['unusable']:,}"


def _shortcuts(side: str, found: Mapping[str, Any]) -> Iterator[str]:
    words = found["words"]
    yield (
        f"{side}: {words['chosen']:.1f} words chosen, {words['rejected']:.1f} rejected; "
        f"“shorter wins” is right for {_percent(found['shorter_wins'])}"
        f"{_warning(found['shorter_wins'], 'try --match-lengths')}"
    )
    if found["later_round_wins"] is not None:
        yield (
            f"{side}: “later round wins” is right for {_percent(found['later_round_wins'])}"
            f"{_warning(found['later_round_wins'], 'try --strategy same_round')}"
        )


def _warning(share: float, then: str) -> str:
    return f" – a reward model can learn that; {then}" if abs(share - 0.5) > _TELLING - 0.5 else ""


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share:.1%}"
