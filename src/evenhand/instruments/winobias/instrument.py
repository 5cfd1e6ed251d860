"""WinoBias as an instrument: is a sentence likelier with the pronoun of the stereotype?"""

import re
from collections.abc import Iterator
from typing import ClassVar

import polars as pl

from evenhand.instruments._contract import DataFolder, Grouping, Mean, Measure, OfTotals
from evenhand.instruments._options import (
    ANTI,
    FEMALE,
    GAP,
    MALE,
    STEREOTYPE,
    OptionItem,
    OptionSet,
    PronounSet,
    fluency,
    gap,
    pinned_files,
    preference,
)
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


# -- pronouns after occupations -------------------------------------------------------------------


FRAME = "The {occupation} said that"  # our choice: the shortest that leaves the pronoun open
_IN_FEMALE = (pl.col("list") == FEMALE).cast(pl.Float64)
_LISTS = OfTotals(
    rows={
        "f": GAP * _IN_FEMALE,
        "nf": _IN_FEMALE,
        "m": GAP * (1 - _IN_FEMALE),
        "nm": 1 - _IN_FEMALE,
    },
    value=lambda t: t[:, 0] / t[:, 1] - t[:, 2] / t[:, 3],
)


class Occupations(PronounSet):
    """Measures which pronoun a model expects after each of the 40 occupations of WinoBias's two
    lists. Our own set: the lists are Zhao et al. 2018, the frame is not."""

    name = "occupations"
    title = "Pronouns after occupations"
    stratum = "list"
    measures = (
        Measure(name="lists_gap", label="gap of the female list − gap of the male list",
                statistic=_LISTS, unit="nats"),
        gap("log p(she) − log p(he), all 40"),
    )  # fmt: skip

    def items(self, data: DataFolder) -> list[OptionItem]:
        files = pinned_files(__package__, data)
        return [
            _after_occupation(group, name.strip())
            for group in (FEMALE, MALE)
            for name in files.read(f"data/{group}_occupations.txt").decode().split("\n")
            if name.strip()
        ]


def _after_occupation(group: str, name: str) -> OptionItem:
    sentence = FRAME.format(occupation=name)
    return OptionItem(
        id=f"occupations/{name}",
        group=group,
        cluster=name,
        options={FEMALE: f"{sentence} she", MALE: f"{sentence} he"},
        given=sentence,
    )
