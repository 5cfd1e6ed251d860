"""A sample of a set that anybody can draw again, and that a larger one contains."""

import hashlib
from collections import defaultdict

import polars as pl


def _place(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def held_out(text: str) -> bool:
    """A fifth, by the text itself: a scorer that was trained on a set may not have seen these."""
    return _place(text) % 5 == 0


def drawn(table: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """At most `most` rows, evenly over kinds and labels: one of each in turn, by their hash."""
    if most is None or len(table) <= most:
        return table
    strata: dict[tuple[str, bool], list[int]] = defaultdict(list)
    texts = table["text"].to_list()
    for row, key in enumerate(zip(table["function"], table["label"], strict=True)):
        strata[key].append(row)
    # Not `held_out`'s own number, which is a multiple of 5 for a whole fifth.
    ordered = [
        sorted(rows, key=lambda row: _place("draw " + texts[row]))
        for _, rows in sorted(strata.items())
    ]
    turns = [(turn, kind) for kind, rows in enumerate(ordered) for turn in range(len(rows))]
    taken = [ordered[kind][turn] for turn, kind in sorted(turns)[:most]]
    return table[sorted(taken)]
