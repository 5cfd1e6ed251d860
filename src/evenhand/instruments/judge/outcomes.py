"""A run's results → one row per judgement. Needs the run folder alone, not the scenarios."""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.malibu import METRICS

_TAGS = (
    *("phase", "base", "scenario", "family", "repeat", "text", "label"),
    *("first", "second", "first_text", "second_text", "order"),
)
# Of the last draft, or of the first: of a panel what its judges said alone.
Of = Literal["scores_after", "scores_before"]


def scores_of(metrics: Sequence[str]) -> tuple[str, ...]:
    """The names of all scores that a judge asked for these metrics gives."""
    in_pairs = (f"{slot}_{metric}" for slot in ("first", "second") for metric in metrics)
    return (*metrics, *in_pairs, "preferred", "preferred_by_other")


def outcomes(
    results: pl.DataFrame, metrics: Sequence[str] = METRICS, of: Of = "scores_after"
) -> pl.DataFrame:
    """Columns: item_id, the tags (null where they do not apply), the judge's scores (null where
    there is none) and `reason`, which says why a judgement is missing."""
    if results.is_empty():
        raise UserError("the run has no finished item yet")
    names = [tag["name"] for tag in results["tags"][0]]
    missing = set(_TAGS) - set(names)
    if missing:
        raise UserError(
            "this run is not over the judge benchmark: its items lack " + ", ".join(sorted(missing))
        )
    tags = {
        name: pl.col("tags").list.get(names.index(name)).struct[1].replace("", None)
        for name in _TAGS
    }
    scores = {name: _score(name, of) for name in scores_of(metrics)}
    return results.select("item_id", "reason", **tags, **scores)


def _score(name: str, of: Of) -> pl.Expr:
    mine = pl.element().filter(pl.element().struct.field("name") == name).struct[1]
    return pl.col(of).list.eval(mine).list.first()
