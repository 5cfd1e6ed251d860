"""Each set as one table: what is said, whether it is toxic, of what kind, about whom.

text      the words, as the set has them
label     toxic or not; of a set with recorded scores: at or above 0.5
recorded  Perspective's toxicity as it was recorded; null elsewhere
function  the kind of text within the set ("" if it has no kinds)
group     whom it is about ("" if nobody is named)
cluster   texts of one template, page or frame: intervals resample these
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles, card_of

_SCHEMA = {
    "text": pl.String,
    "label": pl.Boolean,
    "recorded": pl.Float64,
    "function": pl.String,
    "group": pl.String,
    "cluster": pl.String,
}
# HateCheck in other languages: the code in a set's name, and the language in its file's.
_LANGUAGES = {
    "ar": "arabic", "nl": "dutch", "fr": "french", "de": "german", "hi": "hindi", "it": "italian",
    "zh": "mandarin", "pl": "polish", "pt": "portuguese", "es": "spanish",
}  # fmt: skip
MULTILINGUAL = tuple(f"hatecheck_{code}" for code in _LANGUAGES)
_Read = Callable[[str], bytes]
_Row = dict[str, Any]

# The identities of Jigsaw's templates (their words.csv), the longest first.
_IDENTITIES = re.compile(
    r"\b(african american|middle eastern|middle aged|heterosexual|transgender|protestant|homosexual"
    r"|nonbinary|christian|paralyzed|millenial|bisexual|buddhist|catholic|american|canadian|chinese"
    r"|european|hispanic|japanese|teenage|african|elderly|lesbian|mexican|younger|female|indian"
    r"|jewish|latina|latino|latinx|muslim|straight|taoist|asian|black|blind|lgbtq|older|queer|trans"
    r"|white|young|deaf|lgbt|male|sikh|gay|old)\b",
    re.IGNORECASE,
)


def card() -> dict[str, Any]:
    """The card of the data."""
    return card_of(__package__)


class ToxicitySets:
    def __init__(self, *, local: Path | None, cache: Path) -> None:
        self._local, self._cache = local, cache

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(card()["sets"])

    @property
    def usual(self) -> tuple[str, ...]:
        """The sets that an audit takes where none is named: those in English. What a scorer does in
        a language that it was not made for is asked by name."""
        return tuple(name for name, about in card()["sets"].items() if "language" not in about)

    def table(self, name: str) -> pl.DataFrame:
        """Raises `UserError` where the set's files are not at hand and cannot be fetched."""
        about = card()["sets"][name]
        files = PinnedFiles(
            about["folder"],
            about["url"],
            about["revision"],
            about["sha256"],
            local=self._local,
            cache=self._cache,
        )
        rows = [{**_EMPTY, **row} for row in _READERS[name](files.read) if row["text"].strip()]
        table = pl.DataFrame(rows, schema=_SCHEMA)
        _refuse_other_counts(name, table, about)
        alone = pl.col("cluster") == ""
        return table.with_columns(
            cluster=pl.when(alone).then(pl.col("text")).otherwise(pl.col("cluster"))
        )


def _refuse_other_counts(name: str, table: pl.DataFrame, about: dict[str, Any]) -> None:
    """Refuse a set that does not have the texts that its card counts, where it does."""
    counted = {"texts": len(table), "toxic": int(table["label"].sum())}
    if any(about.get(what, number) != number for what, number in counted.items()):
        raise UserError(f"{name} as read has {counted}; its card says otherwise")


_EMPTY = {"label": None, "recorded": None, "function": "", "group": "", "cluster": ""}


def _rtp(read: _Read) -> Iterator[_Row]:
    for file in ("toxic.jsonl", "nontoxic.jsonl"):
        for line in read(file).splitlines():
            row = orjson.loads(line)
            for part in ("prompt", "continuation"):
                yield from _recorded(row[part]["text"], row[part], part, row["filename"])


def _rtp_models(read: _Read) -> Iterator[_Row]:
    for model in ("gpt3", "gpt4"):
        for line in read(f"toxic.{model}.annotated.filtered.jsonl").splitlines():
            prompt = orjson.loads(line)["prompt"]
            yield from _recorded(prompt["text"], prompt["score"], model, str(prompt["idx"]))


def _recorded(text: str, scores: _Row, function: str, cluster: str) -> Iterator[_Row]:
    toxicity = scores.get("toxicity")
    if toxicity is not None:
        origin = {"function": function, "cluster": cluster}
        yield {"text": text, "recorded": toxicity, "label": toxicity >= 0.5, **origin}


def _hatecheck(file: str, *, contrasts: bool = False) -> Callable[[_Read], Iterator[_Row]]:
    """Read HateCheck. With `contrasts` a template that was made of another one is in its cluster,
    since the two have most words in common."""

    def rows(read: _Read) -> Iterator[_Row]:
        for row in _csv(read(file)):
            made_of = row["ref_templ_id"].removesuffix(".0") if contrasts else ""
            yield {
                "text": row["test_case"],
                "label": row["label_gold"] == "hateful",
                "function": row["functionality"],
                "group": row["target_ident"],
                "cluster": made_of or row["templ_id"],
            }

    return rows


def _templates(file: str) -> Callable[[_Read], Iterator[_Row]]:
    def rows(read: _Read) -> Iterator[_Row]:
        for row in _csv(read(file)):
            text = row["phrase"]
            yield {
                "text": text,
                "label": row["toxicity"] == "toxic",
                "function": row["template"],
                "group": " ".join(hit.lower() for hit in _IDENTITIES.findall(text)),
                "cluster": _IDENTITIES.sub("_", text),
            }

    return rows


def _wikipedia_talk(read: _Read) -> Iterator[_Row]:
    for row in _csv(read("toxicity_nonfuzzed_testset.csv")):
        yield {"text": row["comment"], "label": row["toxic"] == "True"}


def _toxigen(read: _Read) -> Iterator[_Row]:
    for row in orjson.loads(read("toxiGen.json")):
        group = " ".join(sorted(row["target_groups"]))
        yield {"text": row["text"], "label": row["label"] == "hate", "group": group}


def _davidson(read: _Read) -> Iterator[_Row]:
    kinds = {"0": "hate", "1": "offensive", "2": "neither"}
    for row in _csv(read("labeled_data.csv")):
        kind = kinds[row["class"]]
        yield {"text": row["tweet"], "label": kind != "neither", "function": kind}


def _surge(read: _Read) -> Iterator[_Row]:
    for row in _csv(read("toxicity_en.csv")):
        yield {"text": row["text"], "label": row["is_toxic"] == "Toxic"}


def _openai_moderation(read: _Read) -> Iterator[_Row]:
    for line in read("samples-1680.jsonl").splitlines():
        row = orjson.loads(line)
        hateful = any(row.get(label) for label in ("H", "HR", "H2"))
        if hateful or not any(row.get(label) for label in ("S", "S3", "V", "V2", "SH")):
            yield {"text": row["prompt"], "label": hateful}


def _csv(data: bytes) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""))


_READERS: dict[str, Callable[[_Read], Iterator[_Row]]] = {
    "rtp": _rtp,
    "rtp_models": _rtp_models,
    "hatecheck": _hatecheck("test_suite_cases.csv"),
    **{
        f"hatecheck_{code}": _hatecheck(f"hatecheck_cases_final_{language}.csv", contrasts=True)
        for code, language in _LANGUAGES.items()
    },
    "identity_templates": _templates("en_sentence_templates.csv"),
    "identity_pairs": _templates("intersectional_madlibs.csv"),
    "wikipedia_talk": _wikipedia_talk,
    "toxigen": _toxigen,
    "davidson": _davidson,
    "surge": _surge,
    "openai_moderation": _openai_moderation,
}
