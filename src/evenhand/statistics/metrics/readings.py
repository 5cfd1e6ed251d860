"""What is read from one answer: a decision, a number, a refusal, its length and its words."""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from evenhand.core.errors import UserError
from evenhand.statistics.metrics.refusal import refuses

_LARGEST = 1e15  # our choice: no salary, price or number of days; beyond it digits are lost
_GAP = "\u00a0\u202f"  # spaces that do not break stand within a number
_MONEY = "$€£¥₹"
_CODE = re.compile(r"\b(?:(?:USD|EUR|GBP|CHF|CAD|AUD|INR|JPY)(?=\d)|(?:US|CA|AU?|C|NZ|HK)\$)")
_NUMBER = re.compile(
    rf"(?<![\w.,/])(?P<sign>[-−–]?)(?P<money>(?:[{_MONEY}]\s?)?)(?P<inner>[-−–]?)"
    rf"(?P<digits>\.?\d[\d.,'’{_GAP}]*)(?P<blank>[ {_GAP}]?)(?P<unit>[^\W\d_]*)"
)
_TIMES = {
    "k": 1e3, "thousand": 1e3, "million": 1e6, "mn": 1e6, "mio": 1e6, "billion": 1e9, "bn": 1e9,
    "trillion": 1e12, "hundred": 1e2, "dozen": 12.0, "lakh": 1e5, "lakhs": 1e5, "crore": 1e7,
    "crores": 1e7,
}  # fmt: skip
_LETTERS = {"m": 1e6, "b": 1e9}  # million to some, metres or months to others
_MEASURES = frozenset("kg km kcal kw kwh kb mb mg ml mm min mins mi mph mo months".split())
# What makes one number of two: a range, a share, a time, a sum, thousands apart by a blank, 1e5.
_GOES_ON = re.compile(
    rf"\s*(?:[-−–—/:×*^+=]|\b(?:to|and|or)\b)\s*[{_MONEY}]?\s?\d|(?<=\d)e[-+]?\d", re.IGNORECASE
)
_ITEM = re.compile(r"^[ \t]*(\d{1,2})[.)](?=[ \t]+\S)", re.MULTILINE)  # "1. " begins an item
_THOUSANDS = re.compile(rf"[1-9]\d{{0,2}}(?:[,'’{_GAP}]\d{{3}})+(?:\.\d+)?")
_POINTS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}(?:,\d+)?")  # 1.250.000,50
_DECIMAL = re.compile(r"\d+(?:[.,]\d+)?|\.\d+")
_UNCLEAR = re.compile(r"[1-9]\d{0,2}\.\d{3}")  # 45.000 is 45 thousand to some and 45 to others
WORD = r"[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*"


def checked_pattern(pattern: str) -> str:
    """Give the pattern of a decision, or refuse it: it must be a regular expression that can be
    searched in linear time (no look-around, no back-reference) and have one group."""
    try:
        groups = pl.Series([""]).str.extract_groups(pattern).struct.fields
    except pl.exceptions.PolarsError as error:
        why = str(error).strip().splitlines()[-1][:120]
        raise UserError(
            f"--decision {pattern[:60]!r} is not a regular expression that can be used ({why}); "
            r"write one like '\b(approve|reject)\b', without look-around"
        ) from None
    if len(groups) != 1:
        raise UserError(
            f"--decision {pattern[:60]!r} has {len(groups)} groups; put the decision, and nothing "
            r"else, in round brackets: '\b(approve|reject)\b'; (?:…) does not form a group"
        )
    return pattern


def decisions(texts: pl.Series, pattern: str) -> pl.Series:
    """Give the decision that each text names, in small letters. Case does not matter. A text that
    names none, or two different ones, has none: to take the first would be a guess."""
    anycase = f"(?i){pattern}"
    matches = texts.str.extract_all(anycase).list.eval(
        pl.element().str.extract(anycase, 1).str.to_lowercase().str.strip_chars()
    )
    kinds = matches.list.drop_nulls().list.unique()
    decided = kinds.list.len() == 1
    return pl.select(pl.when(decided).then(kinds.list.first())).to_series().rename("decision")


def each_decision(texts: Sequence[str], pattern: str) -> list[str | None]:
    """Give the decision of each of a few texts."""
    return decisions(pl.Series(texts, dtype=pl.String), pattern).to_list()


def first_number(text: str | None) -> float | None:
    """Give the first number of a text: $45,000, 45k, 1.2 million, -$3.5. None where there is none,
    or where it can be read in two ways (45.000, 40-50k, 6 m, or "8. She has 3 years")."""
    text = _CODE.sub("$", text or "")
    items = [int(number) for number in _ITEM.findall(text)]
    enumerated = len(items) > 1 and items == list(range(1, len(items) + 1))
    if enumerated:
        text = _ITEM.sub(" ", text)
    match = _NUMBER.search(text)
    if match is None or (match["sign"] and match["inner"]):
        return None
    begins = _ITEM.match(text, text.rfind("\n", 0, match.start()) + 1)
    if begins and begins.end() > match.start("digits"):
        return None  # the number of an item without a list may be the answer
    plain, times = _plain(match["digits"]), _times(match)
    if plain is None or times is None or _goes_on(text, match):
        return None
    value = float(plain) * times
    value = -value if match["sign"] or match["inner"] else value
    return value if math.isfinite(value) and abs(value) <= _LARGEST else None


def _goes_on(text: str, match: "re.Match[str]") -> bool:
    """Say whether what follows the digits, or their unit, makes another number of them."""
    digits = match.start("digits") + len(match["digits"].rstrip(".,'’" + _GAP))
    apart = re.compile(r" \d").match(text, digits)  # 45 000
    return bool(apart or any(_GOES_ON.match(text, at) for at in (digits, match.end("unit"))))


def _plain(digits: str) -> str | None:
    digits = digits.rstrip(".,'’" + _GAP)
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[^\d.]", "", digits)
    if _POINTS.fullmatch(digits):
        return digits.replace(".", "").replace(",", ".")
    if _DECIMAL.fullmatch(digits) and not _UNCLEAR.fullmatch(digits):
        return digits.replace(",", ".")
    return None


def _times(match: "re.Match[str]") -> float | None:
    """By how much a number is to be multiplied for the word after it; None where that is not
    clear: "6 m" may be metres, and "30kpa" pay or pressure."""
    unit, attached = match["unit"].casefold(), not match["blank"]
    if unit in _TIMES:
        return _TIMES[unit]
    if unit in _LETTERS:
        sure = attached and (match["unit"].isupper() or match["money"])
        return _LETTERS[unit] if sure else None
    odd = attached and unit[:1] in ("k", "m", "b") and unit not in _MEASURES
    return None if odd else 1.0


def read(rows: pl.DataFrame, pattern: str | None, number: bool) -> pl.DataFrame:
    """Add to rows with a `text` what is read from it.

    Args:
        rows: The rows, with a column `text`.
        pattern: The regular expression of a decision; None to read none.
        number: Whether to read the first number of each text.

    Returns:
        The rows with `decision`, `number`, `refused`, `length` (in words) and `bag` (its different
        words). All are null where the text is missing.
    """
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


PRIOR_WORDS = 1000.0  # our choice: the prior weighs as much as a thousand words of all texts


@dataclass(frozen=True, slots=True)
class WordOdds:
    """A word with its counts in both sets, its log-odds (above 0: over-used in the first) and z."""

    word: str
    first: int
    second: int
    log_odds: float
    z: float


def word_odds(
    first: Mapping[str, int], second: Mapping[str, int], least: int = 1
) -> tuple[WordOdds, ...]:
    """Compare how often two sets of texts use each word, the most over-used in the first set first.

    With y the count of a word, n that of all words, a = PRIOR_WORDS · (y₁ + y₂)/(n₁ + n₂) and A =
    PRIOR_WORDS: δ = ln((y₁ + a)/(n₁ + A − y₁ − a)) − ln((y₂ + a)/(n₂ + A − y₂ − a)), and z =
    δ/√(1/(y₁ + a) + 1/(y₂ + a)). Range: any. z takes words for independent, which they are not.

    Args:
        first: The count of each word in the first set.
        second: The count of each word in the second set.
        least: How often a word must occur in both sets together.

    Returns:
        One entry per word; empty where a set has no words. A word that is the only one is left out.
    """
    n1, n2 = sum(first.values()), sum(second.values())
    if not n1 or not n2:
        return ()
    rows = []
    for word in sorted(first.keys() | second.keys()):
        y1, y2 = first.get(word, 0), second.get(word, 0)
        if not least <= y1 + y2 < n1 + n2:
            continue
        a = PRIOR_WORDS * (y1 + y2) / (n1 + n2)
        odds1, odds2 = ((y + a) / (n + PRIOR_WORDS - y - a) for y, n in ((y1, n1), (y2, n2)))
        delta = math.log(odds1) - math.log(odds2)
        z = delta / math.sqrt(1 / (y1 + a) + 1 / (y2 + a))
        rows.append(WordOdds(word, y1, y2, delta, z))
    return tuple(sorted(rows, key=lambda row: (-row.z, row.word)))


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Score:
    """Of one answer: `exact` is 0 or 1, `f1` from 0 to 1."""

    exact: float
    f1: float


def normalised(text: str) -> str:
    """Lower case, without punctuation, articles and extra blanks. A hyphen is deleted, not split:
    "second-largest" becomes one word."""
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def has_words(golds: Sequence[str]) -> list[str]:
    """The gold answers that count: those that are not empty once normalised."""
    return [gold for gold in golds if normalised(gold)]


def score(prediction: str, golds: Sequence[str]) -> Score:
    """Exact match and the F1 of shared words, each the best over the gold answers.

    Without a gold answer both are 1 for an empty prediction and 0 for any other. Range: 0 to 1.
    Undefined: never.
    """
    predicted = normalised(prediction)
    accepted = [normalised(gold) for gold in has_words(golds)] or [""]
    return Score(
        exact=max(float(predicted == gold) for gold in accepted),
        f1=max(_f1(predicted.split(), gold.split()) for gold in accepted),
    )


def _f1(predicted: list[str], gold: list[str]) -> float:
    """2 · shared / (predicted + gold), words counted as often as they stand in both."""
    if not predicted or not gold:
        return float(predicted == gold)
    shared = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * shared / (len(predicted) + len(gold))
