"""Which texts are asked about: seeded, as many of each set, spread over families and groups."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenhand.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    items: int = 500  # ours: 0 of 500 still allows 0.6 %
    seed: int = 0

    def describe(self) -> dict[str, object]:
        return {"items": self.items, "seed": self.seed}


def sample(texts: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn texts, set by set."""
    sets = texts["set"].unique(maintain_order=True).to_list()
    rng = np.random.default_rng(sampling.seed)
    drawn = []
    for place, name in enumerate(sets):
        wanted = sampling.items // len(sets) + (place < sampling.items % len(sets))
        rows = texts.filter(pl.col("set") == name)
        if len(rows) < wanted:
            raise UserError(
                f"{name} has {len(rows)} texts, {wanted} of it were asked for; lower --items"
            )
        drawn.append(_spread(rows[rng.permutation(len(rows))], wanted))
    return pl.concat(drawn)


def _spread(shuffled: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """A family in turn, within it a group in turn, within that a kind of sentence in turn."""
    ordered = shuffled
    for within in (["identity", "kind"], ["identity"], ["family"]):
        turn = pl.int_range(pl.len()).over(within)
        ordered = ordered.with_columns(turn=turn).sort("turn", maintain_order=True)
    return ordered.head(wanted).drop("turn")
