"""Which texts are asked about: seeded, as many of each set, spread over families and groups."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenhand.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    items: int = 500  # ours: 0 of 500 still allows 0.6 %
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {"items": self.items, "seed": self.seed}
        return (
            description
            if self.exclude_sample is None
            else {**description, "exclude_sample": self.exclude_sample}
        )


def sample(texts: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn texts, set by set. Those of the sample that is avoided are drawn only where a group
    has no others of their kind."""
    avoided_ids: list[str] = []
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = sample(texts, avoided)["id"].to_list()
    sets = texts["set"].unique(maintain_order=True).to_list()
    rng = np.random.default_rng(sampling.seed)
    parts = []
    for index, name in enumerate(sets):
        count = sampling.items // len(sets) + (index < sampling.items % len(sets))
        rows = texts.filter(pl.col("set") == name)
        if len(rows) < count:
            raise UserError(
                f"{name} has {len(rows)} texts, {count} of it were asked for; lower --items"
            )
        shuffled = rows[rng.permutation(len(rows))]
        unseen_first = shuffled.sort(pl.col("id").is_in(avoided_ids), maintain_order=True)
        parts.append(_spread(unseen_first, count))
    return pl.concat(parts)


def _spread(shuffled: pl.DataFrame, count: int) -> pl.DataFrame:
    """A family in turn, within it a group in turn, within that a kind of sentence in turn."""
    ordered = shuffled
    for within in (["identity", "kind"], ["identity"], ["family"]):
        turn = pl.int_range(pl.len()).over(within)
        ordered = ordered.with_columns(turn=turn).sort("turn", maintain_order=True)
    return ordered.head(count).drop("turn")
