"""StereoSet, development set: 4,229 contexts with a stereotype, an anti-stereotype and an unrelated
end (Nadeem et al. 2021)."""

from pathlib import Path
from typing import Any

import orjson

from evenhand.instruments.option_sets import OptionItem, pinned_files

_FILE = "data/dev.json"
INTRA, INTER = "intrasentence", "intersentence"


def items(local: Path | None, cache: Path) -> list[OptionItem]:
    data = orjson.loads(pinned_files(__package__, local, cache).read(_FILE))["data"]
    return [_item(row, task) for task in (INTRA, INTER) for row in data[task]]


def _item(row: dict[str, Any], task: str) -> OptionItem:
    """Between sentences, the context is given; within one, the filled sentence is all there is."""
    given = row["context"].strip() if task == INTER else ""
    ends = {
        one["gold_label"].replace("-", "_"): one["sentence"].strip() for one in row["sentences"]
    }
    return OptionItem(
        id=f"{task}/{row['id']}",
        group=row["bias_type"],
        cluster=row["target"].lower(),
        options={name: f"{given} {end}" if given else end for name, end in ends.items()},
        given=given,
        tags={"task": task},
    )
