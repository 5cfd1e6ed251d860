"""EsBBQ and CaBBQ: Spanish of Spain, and Catalan. Two parallel sets (Ruiz-Fernández et al. 2025).

The stereotyped group is said twice: each option is tagged with its group, and a clear question is
marked pro- or anti-stereotypical. Where the two disagree nothing is known, and nothing is scored.
"""

import io
from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.instruments.files import PinnedFiles

_KEY = ("category", "template_id", "version")
_WORDS = r"'[^']*'|\"[^\"]*\""
_BLOCKS = 1000  # more than a template has


def records(files: PinnedFiles, card: Mapping[str, Any]) -> pl.DataFrame:
    read = [pl.read_csv(io.BytesIO(files.read(name)), infer_schema=False) for name in files.sha256]
    raw = pl.concat(read).with_columns(
        pl.col("version").fill_null(""),
        pl.col("label", "template_id").cast(pl.Int64),
        condition="context_condition",
        polarity="question_polarity",
    )
    labelled = raw.with_columns(unknown=_unknown(), biased=_biased()).with_columns(block=_block())
    return labelled.select(
        "category",
        "context",
        "question",
        "label",
        "polarity",
        "condition",
        "unknown",
        question_index=pl.col("template_id").cast(pl.String),
        # The data write "unknown" for the option whose words are left to whoever asks.
        options=pl.concat_list(
            pl.when(pl.col("unknown") == n).then(pl.lit(card["unknown"])).otherwise(f"ans{n}")
            for n in range(3)
        ),
        biased=pl.when(~_disputed()).then("biased"),
        names=pl.lit(value=False),  # our choice: as their paper counts, names and groups together
        against=_listed("stereotyped_groups").list.join(", "),
        block="block",
    )


def _unknown() -> pl.Expr:
    tagged = [_group(n) == "unknown" for n in range(3)]
    return pl.concat_list(tagged).list.arg_max().cast(pl.Int64)


def _listed(column: str) -> pl.Expr:
    return pl.col(column).str.extract_all(_WORDS).list.eval(pl.element().str.slice(1).str.head(-1))


def _group(option: int) -> pl.Expr:
    """The tag's last words are the name of the group, as the authors' own scoring takes them."""
    return (
        _listed(f"answer_info.ans{option}").list.last().str.split(",").list.last().str.strip_chars()
    )


def _biased() -> pl.Expr:
    """The one option of a stereotyped group, or in a non-negative question the other person."""
    groups = _listed("stereotyped_groups")
    first, second = (groups.list.contains(_group(n)) for n in range(2))
    target = pl.when(first & ~second).then(0).when(second & ~first).then(1)
    return pl.when(pl.col("polarity") == "neg").then(target).otherwise(1 - target).cast(pl.Int64)


def _disputed() -> pl.Expr:
    """True of all records of a template with these tags, if one of them is marked otherwise."""
    marked = pl.col("question_type").replace_strict(
        {"pro-stereo": True, "anti-stereo": False}, default=None, return_dtype=pl.Boolean
    )
    disputed = marked != (pl.col("label") == pl.col("biased"))
    alike = ("category", "template_id", "answer_info.ans0", "answer_info.ans1")
    return disputed.any().over(alike)


def _block() -> pl.Expr:
    """Each unclear pair of questions with a clear pair that begins with its text.

    A template is written out with the two people in either order, in the unclear part ("ambig"), in
    what is added ("disambig") or in both ("all"); the first kind alone has unclear questions of its
    own. Of these the flipped ones go with "all", so that a template has blocks whose answer fits
    the stereotype and blocks whose answer does not. What is left over is clear questions alone.
    """
    clear = pl.col("condition") == "disambig"
    kind = (*_KEY, "flipped", "condition")
    # A pair is a negative question and the other one behind it; a few texts have one of the two.
    paired = pl.col("polarity").ne(pl.col("polarity").shift(1)) & (
        pl.col("context") == pl.col("context").shift(1)
    )
    begins = (pl.col("polarity") == "neg") | ~paired.fill_null(value=False)
    turn = begins.cum_sum().over(kind)
    # An unclear question stands right before the first clear one of its text.
    number = pl.when(clear).then(turn).otherwise(turn.shift(-1))
    swapped = (pl.col("flipped") == "all").any().over(_KEY)
    left_over = clear & swapped & (pl.col("flipped") == "ambig")
    part = (
        pl.when(left_over)
        .then(2)
        .otherwise(
            pl.col("flipped").replace_strict({"original": 0, "ambig": 1, "all": 1, "disambig": 3})
        )
    )
    sort_key = pl.format("{}/{}/{}", "version", part, number.cast(pl.String).str.zfill(4))
    return _BLOCKS * pl.col("template_id") + _rank(sort_key, "category", "template_id")


def _rank(sort_key: pl.Expr, *over: str) -> pl.Expr:
    return sort_key.rank("dense").over(over).cast(pl.Int64)
