"""What is read from one answer: a decision, a number, a refusal, its length and its words."""

import math
import re

import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.refusal import refuses

_LARGEST = 1e15  # our choice: no salary, price or number of days; beyond it digits are lost
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−–]?)(?P<digits>\d[\d.,'’\u00a0\u202f]*)"
    r"(?:[ \u00a0]?(?P<unit>k|m|mn|thousand|million)(?![^\W_]))?",
    re.IGNORECASE,
)
_NO_ITEM = re.compile(r"^[ \t]*\d{1,2}[.)](?=\s)", re.MULTILINE)  # "1. " begins an item of a list
_THOUSANDS = re.compile(r"\d{1,3}(?:[,'’\u00a0\u202f]\d{3})+(?:\.\d+)?")
_POINTS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?")  # 1.250.000,50
_DECIMAL = re.compile(r"\d+(?:[.,]\d+)?")
_UNCLEAR = re.compile(r"\d{1,3}\.\d{3}")  # 45.000 is 45 thousand to some and 45 to others
_TIMES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "mn": 1e6, "million": 1e6}
WORD = r"[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*"


def checked_pattern(pattern: str) -> str:
    """Give the pattern of a decision, or refuse it: it must be a regular expression that can be
    searched in linear time (no look-around, no back-reference) and have one group."""
    try:
        groups = pl.Series([""]).str.extract_groups(pattern).struct.fields
    except pl.exceptions.PolarsError as error:
        why = str(error).strip().splitlines()[-1][:120]
        raise UserError(
            f"--decision {pattern[:60]!r} is no regular expression that can be used ({why}); "
            r"write one like '\b(approve|reject)\b', without look-around"
        ) from None
    if len(groups) != 1:
        raise UserError(
            f"--decision {pattern[:60]!r} has {len(groups)} groups; put the decision, and nothing "
            r"else, in round brackets: '\b(approve|reject)\b'; (?:…) is a bracket that is no group"
        )
    return pattern


def decisions(texts: pl.Series, pattern: str) -> pl.Series:
    """Give the decision that each text names, in small letters. Case does not matter. A text that
    names none, or two different ones, has none: to take the first would be a guess."""
    anycase = f"(?i){pattern}"
    named = texts.str.extract_all(anycase).list.eval(
        pl.element().str.extract(anycase, 1).str.to_lowercase().str.strip_chars()
    )
    kinds = named.list.drop_nulls().list.unique()
    one = kinds.list.len() == 1
    return pl.select(pl.when(one).then(kinds.list.first())).to_series().rename("decision")


def first_number(text: str | None) -> float | None:
    """Give the first number of a text: $45,000, 45k, 1.2 million, −3.5. None where there is none,
    or where it can be read in two ways (45.000)."""
    found = _NUMBER.search(_NO_ITEM.sub(" ", text or ""))
    if found is None:
        return None
    digits = found["digits"].rstrip(".,'’\u00a0\u202f")
    if _THOUSANDS.fullmatch(digits):
        plain = re.sub(r"[^\d.]", "", digits)
    elif _POINTS.fullmatch(digits):
        plain = digits.replace(".", "").replace(",", ".")
    elif _DECIMAL.fullmatch(digits) and not _UNCLEAR.fullmatch(digits):
        plain = digits.replace(",", ".")
    else:
        return None
    value = float(plain) * _TIMES.get((found["unit"] or "").lower(), 1.0)
    value = -value if found["sign"] else value
    return value if math.isfinite(value) and abs(value) <= _LARGEST else None


def read(rows: pl.DataFrame, pattern: str | None, number: bool) -> pl.DataFrame:
    """Add to rows with a `text` what is read from it: `decision`, `number`, `refused`, `length` (in
    words) and `bag` (its different words). All are null where there is no text."""
    texts = rows["text"]
    nothing = pl.lit(None)
    return rows.with_columns(
        decision=nothing.cast(pl.String) if pattern is None else decisions(texts, pattern),
        number=nothing.cast(pl.Float64)
        if not number
        else pl.Series([first_number(text) for text in texts], dtype=pl.Float64),
        refused=pl.Series(
            [None if text is None else refuses(text) for text in texts], dtype=pl.Boolean
        ),
        words=texts.str.to_lowercase().str.extract_all(WORD),
    ).with_columns(
        length=pl.col("words").list.len().cast(pl.Float64), bag=pl.col("words").list.unique()
    )
