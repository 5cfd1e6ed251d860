"""Which records are asked: seeded, stratified by category, whole 2×2 blocks.

"The first N" would measure one category, and a half block would compare a stereotype with nothing.
"""

from dataclasses import dataclass
from importlib import resources
from typing import Literal

import numpy as np
import polars as pl

from evenhand.errors import UserError

PRESETS = {
    "templates": "one whole block from each of the 343 templates: 1,372 items (the default)",
    "all": "all 58,492 items",
    "stardtox": "100 random items from each of 11 categories, as the StarDTox paper drew them",
    "mabrf": "the 110 items of the MABRF paper",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    preset: Literal["templates", "all", "stardtox", "mabrf"] = "templates"
    per_category: int | None = None  # items, rounded up to whole blocks; overrules the preset
    seed: int = 0

    def describe(self) -> dict[str, object]:
        if self.per_category is not None:
            return {"per_category": self.per_category, "seed": self.seed}
        return {"preset": self.preset, "seed": self.seed}


def sample(records: pl.DataFrame, sampling: Sampling) -> pl.DataFrame:
    """The drawn records, in the order of the data."""
    rng = np.random.default_rng(sampling.seed)
    if sampling.per_category is not None:
        return _blocks_per_category(records, sampling.per_category, rng)
    match sampling.preset:
        case "templates":
            return _one_block_per_template(records, rng)
        case "all":
            return records
        case "stardtox":
            return _rows_per_category(records, 100, rng)
        case "mabrf":
            return _mabrf(records)


def spread(drawn: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The drawn records in a seeded order of whole blocks, so that a run that is stopped early has
    asked a bit of every category and not the first categories alone."""
    keyed = drawn.with_columns(block=pl.col("example_id") // 4)
    blocks = keyed.select("category", "block").unique(maintain_order=True)
    order = np.random.default_rng([seed, 1]).permutation(len(blocks))  # not the sample's own draws
    ordered = keyed.join(
        blocks.with_columns(place=order), on=["category", "block"], maintain_order="left"
    )
    return ordered.sort("place", maintain_order=True).drop("block", "place")


def _block(records: pl.DataFrame) -> pl.DataFrame:
    """Each scenario's four rows stand together in the data."""
    return records.with_columns(block=pl.col("row") // 4)


def _one_block_per_template(records: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    blocked = _block(records)
    drawn: list[int] = []
    for _, template in blocked.group_by("category", "question_index", maintain_order=True):
        drawn.append(int(rng.choice(template["block"].unique(maintain_order=True).to_numpy())))
    return _keep(blocked, drawn)


def _blocks_per_category(
    records: pl.DataFrame, items: int, rng: np.random.Generator
) -> pl.DataFrame:
    """Blocks spread as evenly over a category's templates as they go."""
    wanted = -(-items // 4)
    blocked, drawn = _block(records), list[int]()
    for (category,), rows in blocked.group_by("category", maintain_order=True):
        blocks = rows.unique("block", maintain_order=True)
        if len(blocks) < wanted:
            raise UserError(
                f"{category!r} has {len(blocks) * 4} items in whole blocks, {items} were asked "
                "for; lower --per-category"
            )
        shuffled = blocks[rng.permutation(len(blocks))]
        rounds = shuffled.with_columns(turn=pl.int_range(pl.len()).over("question_index"))
        drawn += rounds.sort("turn", maintain_order=True)["block"].head(wanted).to_list()
    return _keep(blocked, drawn)


def _rows_per_category(records: pl.DataFrame, rows: int, rng: np.random.Generator) -> pl.DataFrame:
    drawn: list[int] = []
    for _, category in records.group_by("category", maintain_order=True):
        drawn += rng.choice(category["row"].to_numpy(), rows, replace=False).tolist()
    return records.filter(pl.col("row").is_in(drawn))


def _mabrf(records: pl.DataFrame) -> pl.DataFrame:
    text = resources.files(__package__).joinpath("mabrf110.csv").read_bytes()
    return records.join(pl.read_csv(text), on=["category", "example_id"], how="semi")


def _keep(blocked: pl.DataFrame, drawn: list[int]) -> pl.DataFrame:
    return blocked.filter(pl.col("block").is_in(drawn)).drop("block")
