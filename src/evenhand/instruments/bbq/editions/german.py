"""GG-BBQ: German, about gender alone (Satheesh et al. 2025). Subset I has words for groups, subset
II has first names.

Options are tagged M, F, non_binary and unknown. The templates say "trans" of the people whom the
records tag "non_binary".
"""

import re
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles

_SUBSETS = {1: "bbq_de", 2: "bbq_de_proper_names"}
_CONDITIONS = {"ambig": "amb", "disambig": "disamb"}
_POLARITIES = {"negative": "neg", "non_negative": "nonneg"}
_GROUPS = {"F": "F", "M": "M", "non_binary": "trans", "unknown": "unknown"}  # of each tag
_PEOPLE = {"F": "women", "M": "men", "trans": "trans people"}
_BLOCKS = 10_000  # more than a subset has


def records(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    """Give the records of both subsets."""
    table = pl.concat([_subset(files, subset) for subset in _SUBSETS])
    swapped = pl.col("question_index").is_in(card["swapped"])
    return table.with_columns(biased=pl.when(~swapped).then("biased"))


def _subset(files: PinnedFiles, subset: int) -> pl.DataFrame:
    parts = []
    for condition, word in _CONDITIONS.items():
        name = f"data/subset-{subset}/{_SUBSETS[subset]}_{word}_test.jsonl"
        part = pl.read_ndjson(files.read(name))
        parts.append(part.with_columns(condition=pl.lit(condition)))
    raw = pl.concat(parts)
    templates = _templates_of(raw, files.read(f"templates/subset-{subset}.csv"))
    labelled = raw.with_columns(
        polarity=pl.col("question_type").replace_strict(_POLARITIES),
        unknown=_first(_group(n) == "unknown" for n in range(3)),
        target=_first(_stereotyped(n) for n in range(3)),
    ).join(templates, on=["question", "context"], how="left", maintain_order="left")
    other = 3 - pl.col("unknown") - pl.col("target")
    group = pl.concat_list([_group(n) for n in range(3)]).list.get("target")
    return labelled.select(
        "context",
        "question",
        "question_index",
        "label",
        "polarity",
        "condition",
        "unknown",
        category=pl.lit("GenderIdentity"),
        options=pl.concat_list(f"choice_{n}" for n in range(3)),
        biased=pl.when(pl.col("polarity") == "neg").then("target").otherwise(other),
        names=pl.lit(subset == 2),
        against=group.replace_strict(_PEOPLE),
        block=_BLOCKS * subset + pl.col("index") // 2,  # both questions of one text
    )


def _group(option: int) -> pl.Expr:
    tags = pl.col("choice_info").str.extract_all(r"'\w+'\]").list.get(option)
    return tags.str.strip_chars("']").replace_strict(_GROUPS)


def _stereotyped(option: int) -> pl.Expr:
    return pl.col("known_stereotyped_groups").str.contains(pl.format('"{}"', _group(option)))


def _first(places: Any) -> pl.Expr:
    """The one place of three that is true; null where none is, or several are."""
    at = pl.concat_list([flag.cast(pl.Int64) for flag in places])
    return pl.when(at.list.sum() == 1).then(at.list.arg_max().cast(pl.Int64))


def _templates_of(raw: pl.DataFrame, data: bytes) -> pl.DataFrame:
    """The template of each question and text. A record does not name its own: its question does,
    and where two templates ask the same, what its text begins with."""
    patterns: dict[str, dict[str, list[re.Pattern[str]]]] = {}
    for row in pl.read_csv(BytesIO(data), infer_schema=False).iter_rows(named=True):
        for question in ("question_negative_stereotype", "question_non_negative"):
            of_question = patterns.setdefault(row[question].strip(), {})
            of_question.setdefault(row["question_index"], []).append(
                _pattern(row["ambiguous_context "])
            )
    questions = raw.select("question", "context").unique(maintain_order=True)
    templates = [
        _template(patterns.get(q.strip(), {}), context) for q, context in questions.iter_rows()
    ]
    return questions.with_columns(question_index=pl.Series(templates, dtype=pl.String))


def _template(patterns: Mapping[str, list[re.Pattern[str]]], context: str) -> str:
    fitting = [*patterns]
    if len(fitting) > 1:
        fitting = [name for name in patterns if any(text.match(context) for text in patterns[name])]
    if len(fitting) != 1:
        raise UserError(f"GG-BBQ has no one template for the text that begins {context[:60]!r}")
    return fitting[0]


def _pattern(text: str) -> re.Pattern[str]:
    """A template's text with anything in the place of what is filled in."""
    parts = re.split(r"\{\{\w+\}\}", text.strip())
    return re.compile(r"\s*" + ".+?".join(map(re.escape, parts)))
