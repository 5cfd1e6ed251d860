"""WinoBias: sentences with two occupations and a pronoun that stands for one of them (Zhao et al.
2018), each with the pronoun that fits the stereotype and with the other."""

import re
from collections.abc import Iterator
from pathlib import Path

from evenhand.instruments.files import PinnedFiles
from evenhand.instruments.option_sets import (
    ANTI,
    FEMALE,
    MALE,
    STEREOTYPE,
    OptionItem,
    pinned_files,
)

_PRONOUN = re.compile(r"\b(he|him|his|himself|she|her|hers|herself)\b", re.I)
_FEMALE = frozenset({"she", "her", "hers", "herself"})
_MARKED = re.compile(r"\[(.*?)\]")
FRAME = "The {occupation} said that"  # ours: the shortest context that leaves the pronoun open


def items(local: Path | None, cache: Path) -> list[OptionItem]:
    """Pairs that differ in the pronoun alone. 19 of the 1,584 lines differ in other words, or in
    whom the pronoun stands for, and are left out."""
    files = pinned_files(__package__, local, cache)
    found = []
    for kind in ("1", "2"):
        for part in ("dev", "test"):
            name = f"stereotyped_type{kind}.txt.{part}"
            pairs = zip(_lines(files, f"pro_{name}"), _lines(files, f"anti_{name}"), strict=True)
            for number, (pro, anti) in enumerate(pairs, 1):
                if _minimal(pro, anti):
                    found.append(_item(f"type{kind}/{part}/{number}", f"type{kind}", pro, anti))
    return found


def occupations(local: Path | None, cache: Path) -> list[OptionItem]:
    """The pronoun after "The nurse said that", for the 40 occupations of the lists."""
    files = pinned_files(__package__, local, cache)
    found = []
    for group in (FEMALE, MALE):
        for name in files.read(f"data/{group}_occupations.txt").decode().split("\n"):
            if name.strip():
                given = FRAME.format(occupation=name.strip())
                options = {FEMALE: f"{given} she", MALE: f"{given} he"}
                found.append(
                    OptionItem(
                        id=f"occupations/{name.strip()}",
                        group=group,
                        cluster=name.strip(),
                        options=options,
                        given=given,
                    )
                )
    return found


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
    named = next((text for text in marked if not _PRONOUN.fullmatch(text)), "")
    return re.sub(r"^(the|an?) ", "", named)


def _plain(sentence: str) -> str:
    return re.sub(r"\s+", " ", sentence.replace("[", "").replace("]", ""))
