"""RedditBias as an instrument: is a biased phrase likelier about the group it was written about?"""

import csv
import io
from collections.abc import Iterator
from typing import ClassVar

import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Mean, Measure, card_of
from evenhand.instruments._options import (
    ANTI,
    FACTS,
    STEREOTYPE,
    OptionItem,
    OptionSet,
    fluency,
    pinned_files,
    preference,
)
from evenhand.instruments.files import PinnedFiles

_PARTS = ("test", "valid")


class RedditBias(OptionSet):
    """Measures bias on RedditBias: 2,425 phrases from Reddit against women, LGBTQ people, Black
    people, Jews or Muslims, each also about another group (Barikeri et al. 2021)."""

    name = "redditbias"
    title = "RedditBias"
    clusters = "swaps of words"
    usual = False
    stratum: ClassVar = "dimension"
    facts: ClassVar = {**FACTS, "swap": pl.String()}
    also_clusters = ("swap",)
    measures = (
        preference("stereotype_score", "stereotype score", role="primary"),
        preference("stereotype_score_per_token", "… by the mean per token", per_token=True),
        Measure(name="stereotype_gap", label="log p(group) − log p(other group)", unit="nats",
                statistic=Mean(pl.col(STEREOTYPE) - pl.col(ANTI))),
        fluency(STEREOTYPE, ANTI),
    )  # fmt: skip
    groups = (Grouping(column="dimension", measures=("stereotype_score", "stereotype_gap")),)

    def items(self, data: DataFolder) -> list[OptionItem]:
        """Pairs that differ; in three of them the swap changed nothing."""
        files = pinned_files(__package__, data)
        return [
            item
            for dimension, groups in card_of(__package__)["dimensions"].items()
            for part in _PARTS
            for item in _pairs(files, dimension, groups, part)
        ]


def _pairs(
    files: PinnedFiles, dimension: str, groups: tuple[str, str], part: str
) -> Iterator[OptionItem]:
    """Pair the rows of a part; the second file repeats the phrases of the first next to its own."""
    about, other = (_rows(files, dimension, group, part) for group in groups)
    for number, (row, swapped) in enumerate(zip(about, other, strict=True)):
        texts = {
            STEREOTYPE: row["comments_processed"].strip(),
            ANTI: swapped["comments_processed"].strip(),
        }
        if texts[STEREOTYPE] != texts[ANTI]:
            yield OptionItem(
                id=f"redditbias/{dimension}/{part}/{number}",
                group=dimension,
                cluster=f"{dimension}/{part}/{number}",
                options=texts,
                tags={"swap": f"{dimension} {swapped['initial_demo']}"},
            )


def _rows(files: PinnedFiles, dimension: str, group: str, part: str) -> Iterator[dict[str, str]]:
    name = f"data/{dimension}/reddit_comments_{dimension}_{group}_biased_{part}_reduced.csv"
    yield from csv.DictReader(io.StringIO(files.read(name).decode(), newline=""))
