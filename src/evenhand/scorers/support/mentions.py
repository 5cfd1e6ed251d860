"""Who a part of the context is about: the one who was chosen, another, both or nobody."""

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.scorers.support.reading import (
    BREAKS,
    PRONOUNS,
    Meanings,
    is_mark,
    sentences,
    stem,
    tells,
    words,
)

_ALIKE = 0.5  # our choice: how near a word must be to stand for one that the context lacks
_SAID = 2  # words after a mention from which on "and" begins a new part


_Piece = tuple[list[str], list[str], str]  # its words, who is named in it, who first


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a sentence, and who it is about."""

    words: tuple[str, ...]
    about: frozenset[str]  # of "chosen" and "other"
    first: str  # who is named first in it; "" if nobody is, and it goes on about the one before
    sentence: int


@dataclass(frozen=True, slots=True)
class Told:
    """A context in parts, and the stems in it by which the options are named."""

    parts: tuple[Part, ...]
    names: frozenset[str]


def marks_of(answer: str, others: Sequence[str]) -> tuple[str, ...]:
    """The stems by which an answer is known: those that no other option has, if there are any."""
    stems = tuple(dict.fromkeys(stem(word) for word in words(answer) if tells(word)))
    shared = {stem(word) for other in others for word in words(other)}
    return tuple(mark for mark in stems if mark not in shared) or stems


def parts(context: str, chosen: str, others: Sequence[str], meanings: Meanings) -> Told:
    """A context in parts, each about those whom it names, or about those of the part before."""
    lines = [words(sentence) for sentence in sentences(context)]
    spellings = {"chosen": _spellings(chosen, others, lines, meanings)}
    apart = [(other, [chosen, *others[:i], *others[i + 1 :]]) for i, other in enumerate(others)]
    spelled = (_spellings(other, beside, lines, meanings) for other, beside in apart)
    spellings["other"] = frozenset[str]().union(*spelled) - spellings["chosen"]
    context_parts: list[Part] = []
    for number, line in enumerate(lines):
        for piece, who, first in _cut(line, spellings):
            about = frozenset(who)
            if (
                not about
                and context_parts
                and (context_parts[-1].sentence == number or _refers(piece))
            ):
                about = context_parts[-1].about
            context_parts.append(Part(tuple(piece), about, first, number))
    marks = [mark for option in (chosen, *others) for mark in marks_of(option, ())]
    return Told(tuple(context_parts), spellings["chosen"] | spellings["other"] | frozenset(marks))


def _spellings(
    option: str, others: Sequence[str], lines: Sequence[Sequence[str]], meanings: Meanings
) -> frozenset[str]:
    """The stems of the context that stand for an option; near words only if it has none."""
    marks = marks_of(option, others)
    there = frozenset(marks) & {stem(word) for line in lines for word in line}
    if there:
        return there
    ours = [word for word in words(option) if stem(word) in marks]
    theirs = sorted({word for line in lines for word in line if tells(word)})
    near = meanings.near(ours, theirs)
    nearest = [(row, int(row.argmax())) for row in near] if theirs else []
    return frozenset(stem(theirs[at]) for row, at in nearest if row[at] >= _ALIKE)


def _refers(piece: Sequence[str]) -> bool:
    return any(word in PRONOUNS for word in piece[:2])


def _cut(line: Sequence[str], spellings_by_role: dict[str, frozenset[str]]) -> list[_Piece]:
    """A sentence in parts: at marks, at words such as "while", and at an "and" that comes after
    something has been said of the one before it."""
    pieces: list[_Piece] = []
    piece: list[str] = []
    who: list[str] = []
    since = 0
    for word in line:
        joins = word in ("and", "or") and (not who or since < _SAID)
        if is_mark(word) or word in BREAKS or (word in ("and", "or") and not joins):
            if piece:
                pieces.append((piece, who, who[0] if who else ""))
            piece, who, since = ([] if is_mark(word) else [word]), [], 0
            continue
        piece.append(word)
        since += 1
        for name, spellings in spellings_by_role.items():
            if stem(word) in spellings:
                who, since = [*who, name], 0
    if piece:
        pieces.append((piece, who, who[0] if who else ""))
    return _joined(pieces)


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """A part of nothing but a name belongs to the next one: "Kim, who was late, …"."""
    joined: list[_Piece] = []
    for piece, who, first in pieces:
        before, names, earlier = joined[-1] if joined else ([], [], "")
        if before and sum(map(tells, before)) <= len(names):
            joined[-1] = (before + piece, names + who, earlier or first)
        else:
            joined.append((piece, who, first))
    return joined
