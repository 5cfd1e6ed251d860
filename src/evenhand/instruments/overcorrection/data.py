"""Benign texts that name a group: HateCheck, the Jigsaw templates, and paragraphs of our own."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from evenhand.core import Item
from evenhand.core.errors import UserError
from evenhand.core.package_data import read_text
from evenhand.instruments.files import (
    DrawnItems,
    PinnedFiles,
    card_of,
    number_of,
    prompt_of,
    sha256_of,
)
from evenhand.runs.runners.source import read_jsonl
from evenhand.statistics.metrics.refusal import names

COLUMNS = ("id", "set", "kind", "template", "identity", "family", "text")
_NOUNS = {"female": "woman", "male": "man"}


card = partial(card_of, __package__)


def _shipped(name: str) -> str:
    return read_text(__package__, name)


class BenignData:
    """Every text, one row each: columns as in `COLUMNS`. `template` is the text without the word
    for the group; `kind` tells templates of one set apart that are written alike."""

    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._files = {
            name: PinnedFiles.of(name, pin, local, cache) for name, pin in card()["data"].items()
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
                noun = _NOUNS.get(gender) or nouns[number_of(name) % len(nouns)]
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


# -- benign texts as items ------------------------------------------------------------------------


_FORM = 'expected lines like {"text": "…", "identity": "deaf"}'
_Word = Annotated[str, Field(min_length=1, max_length=200)]


class _BenignTextRow(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    text: Annotated[str, Field(min_length=1)]
    identity: _Word  # several are joined by ";"
    family: _Word = "own"
    template: _Word | None = None  # None: a template of its own


def own_texts(path: Path) -> pl.DataFrame:
    """The rows of a file, in the columns that `BenignData.texts` has."""
    rows = [_columns(row, path, number) for number, row in read_jsonl(path, _BenignTextRow, _FORM)]
    if not rows:
        raise UserError(f"{path} is empty; {_FORM}")
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _columns(row: _BenignTextRow, path: Path, number: int) -> tuple[str, ...]:
    for identity in row.identity.split(";"):
        if not names(row.text, identity):
            raise UserError(f"{path} line {number}: the text does not contain {identity.strip()!r}")
    name = f"own/{number}"
    return name, "own", "own", row.template or name, row.identity, row.family, row.text


@dataclass(frozen=True, slots=True, kw_only=True)
class OverCorrectionSampling:
    items: int | None = 500  # our choice: 0 of 500 still allows 0.6%. None: all
    seed: int = 0
    exclude_sample: int | None = None  # the seed of a sample that is avoided

    def describe(self) -> dict[str, object]:
        description: dict[str, object] = {"items": self.items, "seed": self.seed}
        return (
            description
            if self.exclude_sample is None
            else {**description, "exclude_sample": self.exclude_sample}
        )


def sample(texts: pl.DataFrame, sampling: OverCorrectionSampling) -> pl.DataFrame:
    """The drawn texts, set by set. Those of the sample that is avoided are drawn only where a group
    has no others of their kind."""
    avoided_ids: list[str] = []
    if sampling.exclude_sample is not None:
        avoided = replace(sampling, seed=sampling.exclude_sample, exclude_sample=None)
        avoided_ids = sample(texts, avoided)["id"].to_list()
    sets = texts["set"].unique(maintain_order=True).to_list()
    rng = np.random.default_rng(sampling.seed)
    parts = []
    for index, name in enumerate(sets):
        rows = texts.filter(pl.col("set") == name)
        of_all = len(rows) * len(sets) if sampling.items is None else sampling.items
        count = of_all // len(sets) + (index < of_all % len(sets))
        if len(rows) < count:
            raise UserError(
                f"{name} has {len(rows)} texts, but {count} were requested. Use a smaller --items"
            )
        shuffled = rows[rng.permutation(len(rows))]
        unseen_first = shuffled.sort(pl.col("id").is_in(avoided_ids), maintain_order=True)
        parts.append(_spread(unseen_first, count))
    return pl.concat(parts)


def _spread(shuffled: pl.DataFrame, count: int) -> pl.DataFrame:
    """A family in turn, within it a group in turn, within that a kind of sentence in turn."""
    ordered = shuffled
    for within in (["identity", "kind"], ["identity"], ["family"]):
        turn = pl.int_range(pl.len()).over(within)
        ordered = ordered.with_columns(turn=turn).sort("turn", maintain_order=True)
    return ordered.head(count).drop("turn")


prompt = partial(prompt_of, __package__)


class BenignSource(DrawnItems[pl.DataFrame]):
    """A sample of benign texts as a source of items.

    A method that repairs begins with `answer`, the text; one that writes does the task, whose
    right answer is the text. The tags of an item hold all that the report needs.
    """

    def __init__(self, texts: pl.DataFrame, sampling: dict[str, object]) -> None:
        self._drawn = texts
        self._sampling = sampling

    def fingerprint(self) -> dict[str, Any]:
        return {
            "kind": "benchmark",
            "benchmark": "overcorrection",
            "version": card()["version"],
            "prompt": {prompt().label: prompt().sha256},
            "sampling": self._sampling,
            "items": len(self._drawn),
            "sha256": sha256_of(self._drawn.select("id", "identity", "text")),
        }

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            (message,) = prompt().render({"text": row["text"]})
            tags = {name: row[name] for name in ("set", "template", "identity", "family", "text")}
            yield Item(id=row["id"], prompt=message.content, answer=row["text"], tags=tags)
