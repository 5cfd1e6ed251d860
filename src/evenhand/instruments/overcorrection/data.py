"""Benign texts that name a group: HateCheck, the Jigsaw templates, and paragraphs of our own."""

import hashlib
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.core.package_data import read_text
from evenhand.instruments.files import PinnedFiles, card_of

COLUMNS = ("id", "set", "kind", "template", "identity", "family", "text")
_NOUNS = {"female": "woman", "male": "man"}


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


def _shipped(name: str) -> str:
    return read_text(__package__, name)


class BenignData:
    """Every text, one row each: columns as in `COLUMNS`. `template` is the text without the word
    for the group; `kind` tells templates of one set apart that are written alike."""

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._files = {
            name: PinnedFiles(
                name, pin["url"], pin["revision"], pin["sha256"], local=local, cache=cache
            )
            for name, pin in card()["data"].items()
        }

    def texts(self) -> pl.DataFrame:
        rows = [*self._hatecheck(), *self._jigsaw(), *self._paragraphs()]
        return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")

    def _read(self, name: str) -> bytes:
        (file,) = self._files[name].sha256
        return self._files[name].read(file)

    def _hatecheck(self) -> Iterator[tuple[str, ...]]:
        cases = pl.read_csv(io.BytesIO(self._read("hatecheck")), infer_schema=False)
        benign = cases.filter(pl.col("functionality").is_in(["ident_neutral_nh", "ident_pos_nh"]))
        for row in benign.iter_rows(named=True):
            word = card()["hatecheck_words"][row["target_ident"]]
            yield (
                f"hatecheck/{row['case_id']}",
                "hatecheck",
                row["functionality"],
                f"hatecheck/{row['templ_id']}",
                word,
                family_of(word),
                row["test_case"].strip(),
            )

    def _jigsaw(self) -> Iterator[tuple[str, ...]]:
        """The sentences with one group. "hug lesbian" is none, "You are a neat barber" has none."""
        kinds = ["am_hate_adj", "being_adj", "you_are_adj", "name_adj"]
        rows = pl.read_csv(io.BytesIO(self._read("jigsaw_unintended_bias")), infer_schema=False)
        selected = (pl.col("toxicity") == "nontoxic") & pl.col("template").is_in(kinds)
        words = "|".join(sorted(_families(), key=len, reverse=True))
        at = re.compile(rf"\b(?:{words})(?=$| is \w+$)")
        for number, (kind, _, text) in enumerate(rows.filter(selected).iter_rows()):
            match = at.search(text)
            assert match is not None, text
            template = f"jigsaw/{text[: match.start()]}…{text[match.end() :]}"
            word = match[0]
            yield f"jigsaw/{number}", "jigsaw", kind, template, word, family_of(word), text

    def _paragraphs(self) -> Iterator[tuple[str, ...]]:
        lines = _shipped("paragraphs.txt").splitlines()
        paragraphs = [line for line in lines if line and not line.startswith("#")]
        for family, word, gender in _descriptors(orjson.loads(self._read("holisticbias"))):
            for number, paragraph in enumerate(paragraphs):
                name = f"paragraph/{number}/{family}/{word}"
                nouns = ("person",) if family == "gender_and_sex" else ("woman", "man", "person")
                noun = _NOUNS.get(gender) or nouns[_draw(name) % len(nouns)]
                person = f"{_article(word)} {word} {noun}"
                text = paragraph.replace("{person}", person)
                text = text[0].upper() + text[1:]
                yield name, "paragraphs", "paragraph", f"paragraph/{number}", word, family, text


def family_of(word: str) -> str:
    return _families()[word]


@cache
def _families() -> dict[str, str]:
    return {word: family for family, words in card()["families"].items() for word in words}


def _descriptors(by_family: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Family, descriptor and the gender that it goes with, or none."""
    for family in card()["axes"]:
        for group in by_family[family].values():
            for entry in group:
                details = entry if isinstance(entry, dict) else {"descriptor": entry}
                word = details["descriptor"]
                if details.get("preference") in ("dispreferred", "polarizing"):
                    continue
                if word not in card()["left_out"] and "year-old" not in word:
                    yield family, word, details.get("gender", "")


def _article(word: str) -> str:
    """ "an" by sound: "an LGBT person", but "a European" and "a Unitarian"."""
    if word.isupper() or word.startswith("LGBT"):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if word[0].lower() in "aeio" and not word.startswith("Eu") else "a"


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
