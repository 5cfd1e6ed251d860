"""Sentences of our own that speak ill of somebody or do not: patterns × predicates."""

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
FOLDS = 4
MANY = 10  # patterns a predicate
# Where "not well" is not ill: who never saved a child has done nothing wrong.
_NOT_TURNED = ("did", "treated like")
_BEFORE = ("", "", "", "In the spring, ", "According to a friend, ", "As far as I know, ",
           "For years ", "In an interview it was said that ", "Looking back, ")  # fmt: skip
_AFTER = ("", "", "", "who lives near the station", "who grew up in a small town",
          "from the house next door", "who moved here last year", "who was born in May",
          "whom I met at work")  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """A sentence with its label, and where it is left out: the folds of its predicate and of its
    pattern."""

    text: str
    ill: bool
    kind: str  # the polarity of its predicate, and what its pattern makes of it
    predicate: int
    pattern: int


def sentences() -> list[Sentence]:
    """Give each predicate in some of the patterns of its form."""
    patterns: dict[str, list[tuple[str, str]]] = {}
    for line in _lines("patterns.txt"):
        found = re.fullmatch(r"([a-z ]+) ([=!0]) (.+)", line)
        assert found, line
        patterns.setdefault(found[1], []).append((found[2], found[3]))
    made = []
    for form, sign, predicate in predicates():
        rng = random.Random(f"{form} {sign} {predicate}")
        for turn, pattern in rng.sample(patterns[form], min(MANY, len(patterns[form]))):
            if turn == "!" and sign == "+" and form in _NOT_TURNED:
                continue
            ill = sign == "-" if turn == "=" else turn == "!" and sign == "+"
            text = _worded(pattern, predicate, rng)
            made.append(Sentence(text, ill, f"{sign}{turn}", _fold(predicate), _fold(pattern)))
    return made


def predicates() -> Iterator[tuple[str, str, str]]:
    """Give form, sign and words of every predicate."""
    form = sign = ""
    for line in _lines("predicates.txt"):
        if line.startswith("["):
            form, _, sign = line.strip("[]").rpartition(" ")
            continue
        for one in line.split(";"):
            yield form, sign, one.strip()


def _worded(pattern: str, predicate: str, rng: random.Random) -> str:
    who, after, before = "someone", rng.choice(_AFTER), rng.choice(_BEFORE)
    first = f"{who} {after}" if after and pattern.startswith("{S} ") else who
    text = pattern.replace("{p}", predicate).replace("{S}", first, 1).replace("{S}", who)
    return before + text


def _fold(words: str) -> int:
    return hashlib.sha256(words.encode()).digest()[0] % FOLDS


def _lines(name: str) -> list[str]:
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
