"""The little English that a swap needs: words, capitals and articles.

Every rule here either gives the right words or says that it cannot tell. The lists are ours.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evenhand.core.package_data import word_sets
from evenhand.instruments.files import InstrumentWords

_LISTS = word_sets(__package__, "english.toml")

Case = Literal["as written", "capital", "upper", "lower"]

# Letters, digits and "_" are a word's, and so are marks that combine with a letter and the signs
# that join or part letters unseen: "José" is one word however its accent is stored.
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u00ad\u200c\u200d"
WORD = re.compile(rf"[\w{_MARKS}]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token is a word of a text with its place."""

    start: int
    end: int
    text: str

    @property
    def folded(self) -> str:
        return unicodedata.normalize("NFC", self.text).casefold()


def tokens(text: str) -> list[Token]:
    """Give the words of a text; what lies between them is no word."""
    return [Token(match.start(), match.end(), match[0]) for match in WORD.finditer(text)]


def capitalised(word: str) -> str:
    """Give the word with its first letter as a capital and all others as they are."""
    return word[:1].upper() + word[1:]


def case_of(text: str, form: str) -> Case | None:
    """Tell how a text writes a form, or None where its capitals follow no rule of ours."""
    text, form = _plain(text), _plain(form)
    if text == form:
        return "as written"
    if text == form.upper() and len(text) > 1:
        return "upper"
    if text == capitalised(form):
        return "capital"
    return "lower" if text == form.lower() else None


def _plain(text: str) -> str:
    """Give a text in one way of writing accents, apostrophes, hyphens and spaces."""
    text = unicodedata.normalize("NFC", text).replace("’", "'")
    return re.sub(r"\s+", " ", re.sub("[‐‑]", "-", text))


def in_case(word: str, case: Case) -> str:
    """Write a word in a case that was seen."""
    if case == "upper":
        return word.upper()
    if case == "lower":
        return word.lower()
    return capitalised(word) if case == "capital" else word


_STARTS = re.compile(r"(?:^|[.!?…][\"'”’)\]*_]*\s+|\n\s*)[\"'“‘(\[*_#>\-•\s]*$")
_ABBREVIATED = re.compile(r"(?:\b(?:Dr|Mr|Ms|Mrs|Mx|Prof|St|vs|No|e\.g|i\.e)|\b[A-Z])\.\s+$")


def starts_sentence(before: str) -> bool:
    """Say whether a word after this text begins a sentence or a line."""
    before = before[-200:]  # a sentence's start is seen from its last signs
    return bool(_STARTS.search(before)) and not _ABBREVIATED.search(before)


_AN = re.compile(r"(?:[aeiou]|hour|hono[u]?r|honest|heir|8|11(?!\d)|18(?!\d))", re.IGNORECASE)
_NOT_AN = re.compile(
    r"(?:uni(?![nm])|u[kst]\b|us[aeiu]|ut[ei]|ub[ei]|uk|ur[aiou]|eu|ew|one\b|once\b)", re.IGNORECASE
)
_LETTERS = re.compile(r"(?:[A-Z]|[B-DF-HJ-NP-TV-Z]{2,})\b")


def article(word: str) -> str:
    """Give "a" or "an", as the word sounds; capitals without a vowel are read as letters."""
    if _LETTERS.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    return "an" if _AN.match(word) and not _NOT_AN.match(word) else "a"


ARTICLE = re.compile(rf"(?<![\w{_MARKS}'’-])(a|an)(\s+)$", re.IGNORECASE)


_LETTERED = _LISTS["before_letter"]


def _is_letter(written: str, before: str) -> bool:
    """Say whether an "A" is a letter ("In plan A …"): a capital in mid-sentence after a small
    word, or after one that letters follow. In a heading, "Hiring A …", it is an article."""
    words = re.findall(r"\w+", before[-60:])
    if written != "A" or not words or not before[-1:].isspace() or starts_sentence(before):
        return False
    last = words[-1]
    return before.rstrip().endswith(last) and (last[0].islower() or last.casefold() in _LETTERED)


def with_article(before: str, after: str) -> str:
    """Give the text before a word with the "a" or "an" at its end as the word wants it."""
    match = ARTICLE.search(before)
    if match is None or not after or _is_letter(match[1], before[: match.start()]):
        return before
    fitting = article(after)
    written = match[1]
    if written.isupper() and (len(written) > 1 or after[:2].isupper()):
        fitting = fitting.upper()
    elif written[0].isupper():
        fitting = capitalised(fitting)
    return before[: match.start()] + fitting + match[2]


@dataclass(frozen=True, slots=True)
class CannotTell:
    """A reason why a rule gives no words."""

    why: str


# Words after which no noun of the same phrase has begun: after "her" they show an object.
FUNCTION = _LISTS["function_words"]


_OTHERS = word_sets(__package__, "languages.toml")
_ENGLISH = _LISTS["common_english"]
_FEWEST = 2  # our choice: one foreign word may be a name or a loan


_SURNAMES = re.compile(
    r"\b(?:d[eai]|del|della|van|von|la|le|el)(?:\s+(?:la|las|los|der|den))?\s+(?=[A-Z])"
)  # "Maria de la Cruz" is no Spanish sentence


def foreign(text: str) -> str | None:
    """Name the language of a text that is not English, as far as its commonest words tell, or
    None. Our choice: it is another one where its words are seen twice or more, and more often
    than those of English; or where most letters are not Latin."""
    letters = [sign for sign in text if sign.isalpha()]
    latin = sum("LATIN" in unicodedata.name(sign, "") for sign in letters)
    if letters and latin * 2 < len(letters):
        return InstrumentWords(__package__)("another_script")
    words = [token.folded for token in tokens(_SURNAMES.sub("", text))]
    english = sum(word in _ENGLISH for word in words)
    counts = {
        language: sum(word in common for word in words if word not in ("a", "is"))
        for language, common in _OTHERS.items()
    }
    language = max(counts, key=lambda name: counts[name])
    return language if counts[language] >= max(_FEWEST, english + 1) else None


def words_after(text: str, at: int, most: int) -> Iterator[str]:
    """Yield up to `most` words that follow a place with nothing but spaces between them."""
    for _ in range(most):
        match = re.compile(rf"\s+([\w{_MARKS}]+)").match(text, at)
        if match is None:
            return
        yield match[1]
        at = match.end()
