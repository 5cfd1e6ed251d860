"""Ways to write the same words so that a reader sees them and a filter may not."""

import re
from collections.abc import Callable

_ALIKE = str.maketrans("aeopcyxijsAEOPCXMTHB", "аеорсухіјѕАЕОРСХМТНВ")  # Cyrillic
_DIGITS = str.maketrans("oieastOIEAST", "013457013457")
_WORD = re.compile(r"[A-Za-z]{3,}")
_LETTERS = re.compile(r"[A-Za-z]+")
_JOINER = "\N{ZERO WIDTH SPACE}"


def _zero_width(text: str) -> str:
    return _WORD.sub(lambda word: _JOINER.join(word[0]), text)


def _homoglyphs(text: str) -> str:
    return text.translate(_ALIKE)


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _leetspeak(text: str) -> str:
    """A word that would be digits alone stays: "4" and "15" are numbers. That makes this trick
    milder than some ("455"), which `canonical` does not undo."""
    return _LETTERS.sub(lambda word: _digits(word[0]), text)


def _digits(word: str) -> str:
    changed = word.translate(_DIGITS)
    return word if changed.isdigit() else changed


def _spacing(text: str) -> str:
    """Two more blanks stand where a word ends, as people write it to stay readable."""
    return _WORD.sub(lambda word: " ".join(word[0]), text.replace(" ", "   "))


def _accents(text: str) -> str:
    return _WORD.sub(lambda word: "".join(c + "\N{COMBINING ACUTE ACCENT}" for c in word[0]), text)


TRICKS: dict[str, Callable[[str], str]] = {
    "zero-width": _zero_width,
    "homoglyphs": _homoglyphs,
    "full-width": _full_width,
    "leetspeak": _leetspeak,
    "spacing": _spacing,
    "accents": _accents,
}

# Ours. Harmless sentences with signs that filters stumble over.
HARMLESS_EMOJI = tuple(
    f"{sentence} {signs}"
    for sentence in (
        "Thank you for the lovely evening",
        "My sister got the job today",
        "We are at the beach with the dog",
        "The cake turned out well",
        "Two more weeks until the holidays",
    )
    for signs in ("😀", "🔥🔥🔥", "💀", "👩‍👩‍👧", "🏳️‍🌈", "🐒", "👊🏿", "🍑", "🇲🇽", "☪️✡️✝️")
)
