"""CBBQ: Chinese (Huang & Xiong 2024). Ten of its fourteen categories have all of their files here.

No option is tagged. Two things are known all the same. Where the text does not say who, the right
option is the one that says so. Where it does, it contradicts the stereotype, as the authors say
(README, "Total Bias Score"): the stereotyped option is the other person. An unclear question has
the target that the clear ones have which ask the same in the same category; where none does, or two
differ, nothing is known, and nothing is scored.
"""

import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments.files import PinnedFiles

_UNKNOWN = 2  # the last option in every record, which `_refuse_others` holds
_CLEAR = pl.col("condition") == "disambig"
_ASKED = ("category", "question")


def records(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    del card
    read = [pl.read_csv(io.BytesIO(files.read(name)), infer_schema=False) for name in files.sha256]
    raw = pl.concat(read).with_columns(
        pl.col("label").cast(pl.Int64),
        condition=pl.col("context_condition").replace_strict(
            {"ambiguous": "ambig", "disambiguous": "disambig"}
        ),
    )
    _refuse_others(raw)
    joined = raw.join(_asked(raw), on=_ASKED, how="left", maintain_order="left")
    other = 1 - pl.col("label")
    labelled = joined.with_columns(
        biased=pl.when(_CLEAR).then(other).otherwise("target"),
        # One file calls all of its unclear questions negative: the clear ones say which are.
        polarity=pl.coalesce("asks", "question_polarity").replace({"non_neg": "nonneg"}),
    )
    return labelled.with_columns(block=_block()).select(
        "category",
        "question_index",
        "context",
        "question",
        "label",
        "polarity",
        "condition",
        "biased",
        "block",
        unknown=pl.lit(_UNKNOWN, pl.Int64),
        options=pl.concat_list("ans0", "ans1", "ans2"),
        names=pl.lit(value=False),
        against="bias_targeted_groups",
    )


def _refuse_others(raw: pl.DataFrame) -> None:
    """Refuse data whose unknown option is not always the last."""
    if not ((raw["label"] == _UNKNOWN) != raw.select(_CLEAR).to_series()).all():
        raise UserError("CBBQ's last option is not always the unknown one: is it the right set?")


def _asked(raw: pl.DataFrame) -> pl.DataFrame:
    """What the clear records of each question say: its stereotyped option and its polarity, each
    null where they differ."""
    values = {"target": 1 - pl.col("label"), "asks": pl.col("question_polarity")}
    agreed = {
        name: pl.when(value.n_unique() == 1).then(value.first()) for name, value in values.items()
    }
    return raw.filter(_CLEAR).group_by(_ASKED).agg(**agreed)


def _block() -> pl.Expr:
    """The questions about the same two people in the same template, in the order of the files."""
    key = ("category", "question_index", "ans0", "ans1")
    turn = pl.int_range(pl.len()).over(*key, "condition", "polarity")
    sort_key = pl.format("{}/{}/{}/{}", pl.col("question_index").str.zfill(4), "ans0", "ans1", turn)
    return sort_key.rank("dense").over("category").cast(pl.Int64)
