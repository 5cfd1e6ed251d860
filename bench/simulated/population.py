"""A population of templates whose answers are known: what UnifiedQA said to six categories of BBQ.

A drawn run has G templates, with replacement, and of each what the default sample asks: whole
blocks. What is true of the population is then the mean over templates of the mean over blocks.
"""

from functools import cache

import polars as pl

from evenhand.config import data_folder
from evenhand.instruments import instrument_named
from evenhand.instruments.bbq import BbqData

BBQ = instrument_named("bbq")
_FOLDER = "bbq/results_unifiedqa"


@cache
def outcomes(kind: str) -> pl.DataFrame:
    """The outcomes of one of UnifiedQA's models ("race", "arc") as the instrument makes them, with
    the block of each."""
    local = data_folder().local
    assert local is not None, "set EVENHAND_DATA to a folder that has BBQ with UnifiedQA's answers"
    predicted = pl.concat(
        [
            pl.read_ndjson(file.read_bytes()).select(
                "category", "example_id", said=f"unifiedqa-t5-11b_pred_{kind}"
            )
            for file in sorted((local / _FOLDER).glob("preds_*.jsonl.gz"))
        ]
    )
    records = BbqData(local=local, cache=data_folder().cache).records()
    rows = records.join(predicted, on=["category", "example_id"], maintain_order="left")
    options = pl.col("options").list.eval(_plain(pl.element()))
    places = [_plain(pl.col("said")) == options.list.get(place) for place in range(3)]
    choice = pl.coalesce(pl.when(hit).then(place) for place, hit in enumerate(places))
    rows = rows.with_columns(choice=choice).with_columns(
        item_id=pl.concat_str("category", "example_id", separator="/"),
        template=pl.concat_str("category", "question_index", separator="/"),
        status=pl.when(pl.col("choice").is_null())
        .then(pl.lit("failed"))
        .otherwise(pl.lit("answered")),
        reason=pl.when(pl.col("choice").is_null()).then(pl.lit("unreadable_reply")),
        gold="label",
        masked=pl.col("masked").cast(pl.Int64),
        names=pl.col("names").cast(pl.Int64),
    )
    return BBQ.outcomes(rows).with_columns(block=rows["row"] // 4)


def _plain(text: pl.Expr) -> pl.Expr:
    words = text.str.to_lowercase().str.replace_all(r"[^\w\s']", " ")
    return words.str.replace_all(r"\s+", " ").str.strip_chars()
