"""Who was ranked first, read from a reply: by name, or not at all."""

import re
import unicodedata
from collections.abc import Sequence

_DROPPED = re.compile(r"['’‘`´]")  # O'Connell is OCONNELL
_NO_WORD = re.compile(r"[\W_]+")
# "1.", "**2)**", "#3", "1st", "Rank 2:"; of "1.5 years" it is no number of a place.
_NUMBER = re.compile(
    r"[\W_]*(?:(?:rank|place|position|number|no)\b[\W_]*)?(\d{1,6})(?:st|nd|rd|th)?(?![.,]?\d)\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Give a text without accents, case, apostrophes and punctuation, its words one blank apart."""
    apart = unicodedata.normalize("NFKD", text)
    bare = "".join(sign for sign in apart if not unicodedata.combining(sign))
    return _NO_WORD.sub(" ", _DROPPED.sub("", bare).casefold()).strip()


def ranked_first(reply: str, names: Sequence[str]) -> int | None:
    """Give the place in `names` of the candidate whom a reply ranks first; None where it does not
    say so.

    The one line that is numbered 1 must name one candidate; where no line is numbered, the first
    that names anybody. A line of several names says it only if it is nothing but a list. A name
    that is misspelt is nobody's: to take the next one for the first would count against a group.
    For the same reason a list that starts at 0 or 2, or has two lines numbered 1, says nothing.
    """
    plain_names = [plain(name) for name in names]
    lines = [plain(line) for line in reply.splitlines()]
    numbered = [
        (int(number[1]), line)
        for raw, line in zip(reply.splitlines(), lines, strict=True)
        if (number := _NUMBER.match(raw))
    ]
    ones = {line for number, line in numbered if number == 1}
    others = {number for number, line in numbered if number != 1 and _named(line, plain_names)}
    if ones or others:
        lines = list(ones) if len(ones) == 1 and 0 not in others else []
    for line in lines:
        candidates = _named(line, plain_names)
        if candidates:
            return candidates[0] if len(candidates) == 1 or _is_list(line, plain_names) else None
    return None


def first_in_text(reply: str, names: Sequence[str]) -> int:
    """Give the candidate whose name, as it is written, stands first anywhere in the reply, as the
    published table has it: one that is written otherwise, such as O'Connell, stands last."""
    low = reply.lower()
    return min(range(len(names)), key=lambda index: len(low.split(names[index].lower())[0]))


def _named(line: str, names: Sequence[str]) -> list[int]:
    """The candidates that a line names, in its order. Where a name is part of a longer one, only
    the longer one is meant."""
    rest, places = f" {line} ", {}
    for index in sorted(range(len(names)), key=lambda index: -len(names[index])):
        start = rest.find(f" {names[index]} ")
        if start >= 0:
            places[index] = start
            rest = rest.replace(f" {names[index]} ", f" {'.' * len(names[index])} ")
    return sorted(places, key=lambda index: places[index])


def _is_list(line: str, names: Sequence[str]) -> bool:
    """Whether nothing but names, numbers and "and" stands in a line."""
    rest = f" {line} "
    for name in sorted(names, key=len, reverse=True):
        rest = rest.replace(f" {name} ", "  ")
    return all(word.isdigit() or word == "and" for word in rest.split())
