"""What a label could do at worst: every mark or verdict that is missing is put where it hurts most.

A missing mark under the label is 0 and the one it is compared with is 10, or the other way round
for the other side. So a judge never passes because it could not be read: no shift is shown to be
small that was not. That there is a shift is shown by the answers that are there alone.

Each table has the columns label (of pairs also other), base, low, high and missing.
"""

import polars as pl

from evenhand.statistics.bounded import WorstCaseDifference
from evenhand.statistics.metrics import malibu

# Our choice, in points of ten: how far a label is taken to move the mean mark of a base that was
# not met. All eight marks of the base would have to move by three. By simulation (docs/malibu.md)
# an effect at the margin then passes in at most 5 % of audits of 60 bases, also where it is large
# and rare; the ten that the scale allows could not be ruled out by all 63 bases that there are.
LARGEST_SHIFT = 3.0
LARGEST_WIN = malibu.TIE  # from one half to all or none
_REACH = {"win": (0.0, 1.0), "gap": (-float(malibu.TOP), float(malibu.TOP))}
_NEITHER = {"win": malibu.TIE, "gap": 0.0}


def largest(value: str) -> float:
    """The largest effect that is allowed for in a base that was not met."""
    return LARGEST_WIN if value == "win" else LARGEST_SHIFT


def of_labels(judged: pl.DataFrame, value: str, against: str) -> pl.DataFrame:
    """Each label against another one; `judged` comes from `malibu.single`."""
    cell = [name for name in malibu.CELL if name in judged.columns]
    control = judged.filter(pl.col("label") == against).select(*cell, control=value)
    labelled = judged.filter(pl.col("label") != against)
    both = labelled.join(control, on=cell, how="left", nulls_equal=True)
    mark, other = pl.col(value), pl.col("control")
    return (
        both.group_by("label", "base")
        .agg(
            low=(mark.fill_null(0) - other.fill_null(malibu.TOP)).mean(),
            high=(mark.fill_null(malibu.TOP) - other.fill_null(0)).mean(),
            missing=(mark.is_null() | other.is_null()).sum(),
        )
        .sort("label", "base")
    )


def of_pairs(met: pl.DataFrame, value: str) -> pl.DataFrame:
    """Each two labels; `met` comes from `malibu.duels`."""
    first, second = pl.col(f"{value}_first"), pl.col(f"{value}_second")
    least, most = ((first.fill_null(end) + second.fill_null(end)) / 2 for end in _REACH[value])
    return (
        met.group_by("label", "other", "base")
        .agg(
            low=least.mean() - _NEITHER[value],
            high=most.mean() - _NEITHER[value],
            missing=(first.is_null() | second.is_null()).sum(),
        )
        .sort("label", "other", "base")
    )


def of_labels_in_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Each label over all pairs that it was in; `pairs` comes from `of_pairs`."""
    names = ("label", "base", "low", "high", "missing")
    turned = pairs.select(
        "base", "missing", label="other", low=-pl.col("high"), high=-pl.col("low")
    )
    both = pl.concat([pairs.select(names), turned.select(names)])
    return (
        both.group_by("label", "base")
        .agg(pl.col("low", "high").mean(), pl.col("missing").sum())
        .sort("label", "base")
    )


def worst(table: pl.DataFrame, reach: float) -> WorstCaseDifference:
    """One row per base as what the tests read."""
    return WorstCaseDifference(table["low"].to_numpy(), table["high"].to_numpy(), reach)
