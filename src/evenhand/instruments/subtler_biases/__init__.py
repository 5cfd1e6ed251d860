"""subtler_biases: 11,940 contexts with a blank about age, beauty, beauty and profession,
institution and nationality (Kamruzzaman et al. 2024), the source of the five bias types of paper
002."""

import io
from pathlib import Path

import polars as pl

from evenhand.instruments.option_sets import ANTI, STEREOTYPE, UNRELATED, OptionItem, pinned_files

_BLANK = "BLANK"
TYPES = {  # the data's word: ours
    "ageism": "age",
    "beauty": "beauty",
    "beauty_profession": "profession",
    "instituition": "institution",
    "nationality": "nationality",
}


def rows(local: Path | None, cache: Path) -> list[dict[str, str]]:
    data = pinned_files(__package__, local, cache).read("dataset.csv")
    return pl.read_csv(io.BytesIO(data), infer_schema=False).to_dicts()


def items(local: Path | None, cache: Path) -> list[OptionItem]:
    return [_item(number, row) for number, row in enumerate(rows(local, cache))]


def _item(number: int, row: dict[str, str]) -> OptionItem:
    context = row["context"].strip()
    words = {name: row[name].strip() for name in (STEREOTYPE, ANTI, UNRELATED)}
    kind = TYPES[row["bias_type"]]
    # What is a stereotype of one group is the anti-stereotype of the other: the two words together
    # are what contexts share.
    pair = "/".join(sorted((words[STEREOTYPE], words[ANTI])))
    return OptionItem(
        id=f"subtler_biases/{number}",
        group=kind,
        cluster=f"{kind}: {pair}",
        options={name: context.replace(_BLANK, word) for name, word in words.items()},
        topic=context,
        tags={"polarity": row["item_category"], "direction": row["type_category"]},
    )
