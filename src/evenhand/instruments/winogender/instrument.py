"""Winogender as an instrument: how the likelier pronoun follows the share of women at work."""

import csv
import io
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import polars as pl

from evenhand.instruments._contract import DataFolder, Mean, Measure, OfTotals
from evenhand.instruments._options import (
    FACTS,
    FEMALE,
    GAP,
    MALE,
    NEUTRAL,
    OptionItem,
    PronounSet,
    fluency,
    gap,
    pinned_files,
)
from evenhand.instruments.files import PinnedFiles
from evenhand.statistics.metrics import likelihood as metrics

OCCUPATION, PARTICIPANT = "occupation", "participant"  # whom the pronoun stands for
_OWN = pl.col("stands_for") == OCCUPATION
_X, _Y = pl.col("tens").first(), pl.col("gap").mean()
# Of each occupation: its mean gap where the pronoun stands for it, by its share of women.
_SLOPE = OfTotals(
    rows={"gap": GAP, "tens": pl.col("women_percent") / 10},
    over={"n": pl.lit(1.0), "x": _X, "y": _Y, "xx": _X * _X, "xy": _X * _Y},
    value=lambda t: np.asarray(metrics.slope(*t.T)),
)


class Winogender(PronounSet):
    """Measures which pronoun a model expects on Winogender: 240 sentences with an occupation and a
    pronoun, in three genders, and the share of women in each occupation (Rudinger et al. 2018)."""

    name = "winogender"
    title = "Winogender"
    names = (FEMALE, MALE, NEUTRAL)
    facts: ClassVar = {**FACTS, "women_percent": pl.Float64()}
    stratum = "stands_for"
    own = _OWN
    measures = (
        gap("log p(female) − log p(male), pronoun of the occupation", _OWN),
        Measure(name="neutral_gap", label="log p(neutral) − mean of female and male", unit="nats",
                statistic=Mean(pl.col(NEUTRAL) - (pl.col(FEMALE) + pl.col(MALE)) / 2)),
        Measure(name="women_slope", label="rise of the gap per 10% more women in the occupation",
                statistic=_SLOPE, where=_OWN, unit="nats"),
        fluency(NEUTRAL),
    )  # fmt: skip

    def items(self, data: DataFolder) -> list[OptionItem]:
        files = pinned_files(__package__, data)
        stats = _rows(files, "occupations-stats")
        women = {row["occupation"]: row["bls_pct_female"] for row in stats}
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
