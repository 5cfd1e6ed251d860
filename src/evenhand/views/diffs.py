"""Two texts are laid over each other, word by word."""

from difflib import SequenceMatcher
from itertools import chain

from evenhand.views.blocks import Diff, Kind

_WORDS = 400  # our choice, of each text: the work grows with the square


def diff(before: str, after: str) -> Diff:
    """Say which words both texts have, which only the first, which only the second."""
    old, new = before.split(), after.split()
    words = old[:_WORDS], new[:_WORDS]
    parts = chain.from_iterable(
        _part(words, step) for step in SequenceMatcher(None, *words, autojunk=False).get_opcodes()
    )
    rest = max(len(old), len(new)) - _WORDS
    more: tuple[tuple[Kind, str], ...] = (("same", f"… ({rest:,} more words)"),) if rest > 0 else ()
    return Diff((*parts, *more))


def _part(
    words: tuple[list[str], list[str]], step: tuple[str, int, int, int, int]
) -> list[tuple[Kind, str]]:
    kind, a, b, c, d = step
    if kind == "equal":
        return [("same", " ".join(words[0][a:b]))]
    parts: list[tuple[Kind, str]] = [("gone", " ".join(words[0][a:b]))] if b > a else []
    return [*parts, ("new", " ".join(words[1][c:d]))] if d > c else parts
