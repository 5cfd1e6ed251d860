"""Plurals and lists, for every sentence of the catalogue."""

from collections.abc import Mapping, Sequence


def plural(n: int, word: str, many: str = "") -> str:
    """Return the singular or plural of a word: "look", "looks".

    Args:
        n: The number of things.
        word: The singular.
        many: The plural; needed where it is not formed with -s, or with -ies for a final y.
    """
    if n == 1:
        return word
    return many or (f"{word[:-1]}ies" if word.endswith("y") else f"{word}s")


def counted(n: int, word: str, many: str = "") -> str:
    """Return a count with its word: "1 look", "1,200 looks".

    Args:
        n: The number of things.
        word: The singular.
        many: The plural, where it is irregular.
    """
    return f"{n:,} {plural(n, word, many)}"


def counted_columns(columns: Mapping[str, int]) -> str:
    """Return how many values of each column: "50 groups and 15 categories"."""
    parts = [f"{n} {plural(0, column.replace('_', ' '))}" for column, n in columns.items() if n]
    return " and ".join(parts)


def listed(names: Sequence[str]) -> str:
    """Return names as one list: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def spaced(names: Sequence[str]) -> str:
    """Return names with commas, and with spaces for underscores."""
    return ", ".join(name.replace("_", " ") for name in names)
