"""Winogender: 240 sentences with an occupation and a pronoun, in three genders (Rudinger et al.
2018), and the share of women in each occupation."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from evenhand.instruments.files import PinnedFiles
from evenhand.instruments.option_sets import OptionItem, pinned_files

OCCUPATION, PARTICIPANT = "occupation", "participant"  # whom the pronoun stands for


def items(local: Path | None, cache: Path) -> list[OptionItem]:
    files = pinned_files(__package__, local, cache)
    women = {row["occupation"]: row["bls_pct_female"] for row in _rows(files, "occupations-stats")}
    versions: dict[str, dict[str, str]] = {}
    for row in _rows(files, "all_sentences"):
        name, _, gender = row["sentid"].removesuffix(".txt").rpartition(".")
        versions.setdefault(name, {})[gender] = row["sentence"]
    return [_item(name, texts, women) for name, texts in versions.items()]


def _item(name: str, texts: dict[str, str], women: dict[str, str]) -> OptionItem:
    occupation, _, answer = name.split(".")
    stands_for = OCCUPATION if answer == "0" else PARTICIPANT
    return OptionItem(
        id=f"winogender/{name}",
        group=stands_for,
        cluster=occupation,
        options=texts,
        tags={"women_percent": women[occupation]},
    )


def _rows(files: PinnedFiles, name: str) -> Iterator[dict[str, str]]:
    text = files.read(f"data/{name}.tsv").decode()
    yield from csv.DictReader(io.StringIO(text), delimiter="\t")
