"""WinoBias as an instrument: is a sentence likelier with the pronoun of the stereotype?"""

import re
from collections.abc import Iterator
from typing import ClassVar

import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Mean, Measure
from evenhand.instruments._option_items import ANTI, FEMALE, MALE, STEREOTYPE, OptionItem
from evenhand.instruments._options import OptionSet, fluency, pinned_files, preference
from evenhand.instruments.files import PinnedFiles

_PRONOUN = re.compile(r"\b(he|him|his|himself|she|her|hers|herself)\b", re.I)
_FEMALE = frozenset({"she", "her", "hers", "herself"})
_MARKED = re.compile(r"\[(.*?)\]")


class WinoBias(OptionSet):
    """Measures bias on WinoBias: sentences with two occupations and a pronoun that stands for one
    of them, each with the pronoun that fits the stereotype and with the other (Zhao et al.
    2018)."""

    name = "winobias"
    title = "WinoBias"
    clusters = "occupations"
    stratum: ClassVar = "kind"
    measures = (
        preference("stereotype_score", "stereotype score", role="primary"),
        Measure(name="stereotype_gap", label="log p(pro) − log p(anti)", unit="nats",
                statistic=Mean(pl.col(STEREOTYPE) - pl.col(ANTI))),
        fluency(STEREOTYPE, ANTI),
    )  # fmt: skip
    groups = (Grouping(column="kind", measures=("stereotype_score", "stereotype_gap")),)

    def items(self, data: DataFolder) -> list[OptionItem]:
        """Pairs that differ in the pronoun alone. 19 of the 1,584 lines differ in other words, or
        in whom the pronoun stands for, and are left out."""
        files = pinned_files(__package__, data)
        pairs = []
        for kind in ("1", "2"):
            for part in ("dev", "test"):
                name = f"stereotyped_type{kind}.txt.{part}"
                sides = (_lines(files, f"{side}_{name}") for side in ("pro", "anti"))
                for number, (pro, anti) in enumerate(zip(*sides, strict=True), 1):
                    if _minimal(pro, anti):
                        pairs.append(_item(f"type{kind}/{part}/{number}", f"type{kind}", pro, anti))
        return pairs


def _lines(files: PinnedFiles, name: str) -> Iterator[str]:
    for line in files.read(f"data/{name}").decode().splitlines():
        yield line.partition(" ")[2].strip()  # without its number


def _minimal(pro: str, anti: str) -> bool:
    same = _PRONOUN.sub("_", _plain(pro)) == _PRONOUN.sub("_", _plain(anti))
    return same and _plain(pro) != _plain(anti) and _referent(pro) == _referent(anti)


def _item(name: str, group: str, pro: str, anti: str) -> OptionItem:
    marked = [text.strip().lower() for text in _MARKED.findall(pro)]
    gender = FEMALE if any(text in _FEMALE for text in marked) else MALE
    return OptionItem(
        id=f"winobias/{name}",
        group=group,
        cluster=_referent(pro),
        options={STEREOTYPE: _plain(pro), ANTI: _plain(anti)},
        tags={"stereotype_is": gender},
    )


def _referent(sentence: str) -> str:
    """The occupation that the pronoun stands for, without its article."""
    marked = (text.strip().lower() for text in _MARKED.findall(sentence))
    occupation = next((text for text in marked if not _PRONOUN.fullmatch(text)), "")
    return re.sub(r"^(the|an?) ", "", occupation)


def _plain(sentence: str) -> str:
    return re.sub(r"\s+", " ", sentence.replace("[", "").replace("]", ""))
