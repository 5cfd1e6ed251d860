"""KoBBQ: Korean (Jin et al. 2024). Its test set, one filling of every template.

A record's name says all: category, template with its version (a and c go against the stereotype,
b and d fit it), whether the text says who, and which way the question asks. `biased_answer` is the
stereotyped option.
"""

import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.instruments.files import PinnedFiles

_SAMPLES, _TEMPLATES = "data/KoBBQ_test_samples.tsv", "data/KoBBQ_templates.tsv"
_OPTION = r"'[^']*'|\"[^\"]*\""


def records(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    del card
    raw = pl.read_csv(
        io.BytesIO(files.read(_SAMPLES)), separator="\t", infer_schema=False, quote_char=None
    )
    name = pl.col("sample_id").str.split("-")
    parsed = raw.with_columns(
        category=name.list.get(0),
        template=name.list.get(1).str.head(-1),
        version=name.list.get(1).str.tail(1),
        condition=name.list.get(3).replace_strict({"amb": "ambig", "dis": "disambig"}),
        polarity=name.list.get(4).replace_strict({"bsd": "neg", "cnt": "nonneg"}),
        options=pl.col("choices")
        .str.extract_all(_OPTION)
        .list.eval(pl.element().str.slice(1).str.head(-1)),
    )
    block = ("category", "template", "version")
    # What is right where the text does not say who: the option that says so, by no word of it.
    unsaid = pl.col("answer").filter(pl.col("condition") == "ambig").first().over(block)
    joined = parsed.join(_targets(files), on=block, how="left", maintain_order="left")
    return joined.select(
        "category",
        "context",
        "question",
        "polarity",
        "condition",
        "options",
        "against",
        question_index="template",
        label=_place(pl.col("answer")),
        unknown=_place(unsaid),
        biased=_place(pl.col("biased_answer")),
        names=pl.lit(value=False),
        block=(pl.col("template") + pl.col("version"))
        .rank("dense")
        .over("category")
        .cast(pl.Int64),
    )


def _place(answer: pl.Expr) -> pl.Expr:
    """Where an answer stands among the options."""
    at = [pl.col("options").list.get(n) == answer for n in range(3)]
    return pl.when(pl.any_horizontal(at)).then(pl.concat_list(at).list.arg_max()).cast(pl.Int64)


def _targets(files: PinnedFiles) -> pl.DataFrame:
    raw = pl.read_csv(io.BytesIO(files.read(_TEMPLATES)), separator="\t", infer_schema=False)
    return raw.select(
        category=pl.col("Category").str.to_lowercase(),
        template=pl.col("ID").str.zfill(3),
        version="version",
        against="Target_group",
    )
