"""Two answers as a judge is asked about them, either side first, and its verdicts on a pair."""

from collections.abc import Mapping

import polars as pl

from evenhand.core import Item
from evenhand.instruments.files import score_of
from evenhand.instruments.political.data import LEFT, RIGHT, SIDES
from evenhand.methods.two_sides import MATERIAL, PREFERRED, SAME, SCORES, SPOKEN

ORDERS = (f"{LEFT}_first", f"{RIGHT}_first")
_MARKS = ("refuses", "hedges")
# What is known of a pair once both orders are: each of these is null where a verdict is missing.
COLUMNS = ("preference", "toward_first", "even", *(f"{mark}_{side}" for mark in _MARKS
                                               for side in SIDES))  # fmt: skip


def in_both_orders(
    pair: str, requests: Mapping[str, str], answers: Mapping[str, str], tags: Mapping[str, str]
) -> list[Item]:
    """A pair as a judge is asked about it: either side first.

    Args:
        pair: The name of the pair.
        requests: The request of each side.
        answers: The answer of each side.
        tags: Further tags of both items.

    Returns:
        One item for each order.
    """
    return [_item(pair, order, requests, answers, tags) for order in ORDERS]


def _item(
    pair: str,
    order: str,
    requests: Mapping[str, str],
    answers: Mapping[str, str],
    tags: Mapping[str, str],
) -> Item:
    first, second = SIDES if order == ORDERS[0] else SIDES[::-1]
    (message,) = MATERIAL.render(
        {
            "first_request": requests[first],
            "first_answer": answers[first],
            "second_request": requests[second],
            "second_answer": answers[second],
        }
    )
    return Item(
        id=f"{pair}:{order}",
        prompt=message.content,
        tags={**tags, "pair": pair, "order": order},
    )


def verdicts_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Read the verdicts of a judge's rows: `item_id` and a column for each score."""
    return rows.select("item_id", *(score_of("scores_after", name).alias(name) for name in SCORES))


def by_pair(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Join the two orders of each pair.

    Args:
        verdicts: `item_id`, as `in_both_orders` names items, and the scores of each verdict.

    Returns:
        `pair`, `COLUMNS`, and the `least` and `most` of the preferences of both orders.
        `preference` is their mean, from −1 (the left answer, in both orders) to 1. `toward_first`
        goes from −1 (the second answer, in both orders) to 1. A pair without both verdicts has
        none of them.
    """
    parts = pl.col("item_id").str.splitn(":", 2).struct
    right_first = pl.col("order") == ORDERS[1]
    lean = 2 * pl.col(PREFERRED) - 1  # towards the first
    of_sides = {
        f"{mark}_{side}": pl.when(right_first == (side == RIGHT))
        .then(pl.col(f"first_{mark}"))
        .otherwise(pl.col(f"second_{mark}"))
        for mark in _MARKS
        for side in SIDES
    }
    each = verdicts.select(
        *(pl.col(name).cast(pl.Float64) for name in (PREFERRED, SAME, *SPOKEN)),
        pair=parts.field("field_0"),
        order=parts.field("field_1"),
    ).select(
        "pair",
        preference=pl.when(right_first).then(lean).otherwise(-lean),
        toward_first=lean,
        even=pl.col(SAME),
        **of_sides,
    )
    preference = pl.col("preference")
    numbers = {name: pl.col(name).mean() for name in COLUMNS}
    ends = {"least": preference.min(), "most": preference.max()}
    complete = {name: pl.col(name).count() == len(ORDERS) for name in COLUMNS}
    both = [
        pl.when(complete.get(name, complete["preference"])).then(number).alias(name)
        for name, number in {**numbers, **ends}.items()
    ]
    return each.group_by("pair", maintain_order=True).agg(both)
