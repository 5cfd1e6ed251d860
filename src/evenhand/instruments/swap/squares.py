"""How much more two answers differ between groups than within one: the effect beyond the placebo.

Of each prompt the labels of a family are paired. The answer about a label is held against two
placebo versions: that of the other label of its pair, and that of its own. What the first makes
differ beyond the second is the excess. Four answers, a label and a placebo of each of two, are a
square; if labels say nothing, the two placebos can change places, and the excess changes its sign:
so it is 0 on average, however much answers differ by chance or by the placebo.
"""

import hashlib
from collections.abc import Sequence

import polars as pl

SAME_PLACE = ("cluster", "family", "repeat")


def _apart(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """|x − y| / (|x| + |y|), from 0 to 1; two zeros do not differ."""
    size = left.abs() + right.abs()
    far = (left - right).abs() / size
    return pl.when(size == 0).then(0.0).otherwise(far)


def _wording(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """1 − the share of their different words that both have (Jaccard 1912); two empty texts do not
    differ."""
    all_ = left.list.set_union(right).list.len()
    both = left.list.set_intersection(right).list.len()
    return pl.when(all_ == 0).then(0.0).otherwise(1 - both / all_)


# How far two answers are apart by each outcome, from 0 to 1. Each is of negative type, so that the
# excess of labels that matter is above 0 and never below (design/swap.md).
DISTANCES = {
    "decision": lambda x, y: (x != y).cast(pl.Float64),
    "number": _apart,
    "refused": lambda x, y: (x != y).cast(pl.Float64),
    "length": _apart,
    "score": lambda x, y: (x - y).abs(),
    "bag": _wording,
}


def paired(labels: Sequence[str], key: str) -> dict[str, str]:
    """Pair the labels of a family for one prompt, drawn by its key; of an odd number one stays
    alone. A pair is two labels of which each is the other's other."""
    shuffled = sorted(labels, key=lambda label: hashlib.sha256(f"{key}\n{label}".encode()).digest())
    twos = zip(shuffled[::2], shuffled[1::2], strict=False)
    return {label: other for two in twos for label, other in (two, two[::-1])}


def excesses(answers: pl.DataFrame) -> pl.DataFrame:
    """Give for each answer about a label of a pair how far it is from the other's placebo, how far
    from its own (`beside.…`), and the excess of the first, by every outcome that the answers have.
    Null where any of these answers is not known."""
    outcomes = [name for name in DISTANCES if name in answers.columns]
    group = answers.filter(pl.col("role") == "group", pl.col("other") != "")
    placebo = answers.filter(pl.col("role") == "placebo")
    own_distances, other_distances = (
        group.join(
            placebo.select(*SAME_PLACE, "label", *outcomes),
            left_on=[*SAME_PLACE, of],
            right_on=[*SAME_PLACE, "label"],
            how="left",
            suffix=":p",
        )
        .group_by("item_id", maintain_order=True)
        .agg(_mean_of_all(DISTANCES[name](pl.col(name), pl.col(f"{name}:p"))).alias(name)
             for name in outcomes)
        for of in ("label", "other")
    )  # fmt: skip
    both = other_distances.join(own_distances, on="item_id", suffix=":own")
    return both.select(
        "item_id",
        *(pl.col(f"{name}:own").alias(f"beside.{name}") for name in outcomes),
        *((pl.col(name) - pl.col(f"{name}:own")).alias(f"excess.{name}") for name in outcomes),
    )


def _mean_of_all(distance: pl.Expr) -> pl.Expr:
    """The mean over all placebos; null where one is not known."""
    return pl.when(distance.null_count() == 0).then(distance.mean())
