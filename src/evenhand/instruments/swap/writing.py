"""Pieces of a prompt become a text: words in their capitals, "a" or "an", verbs after "they"."""

import re
from collections.abc import Callable

from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.grammar import (
    FUNCTION,
    CannotTell,
    Case,
    capitalised,
    in_case,
    starts_sentence,
    with_article,
    words_after,
)
from evenhand.instruments.swap.meaning import PEOPLE
from evenhand.instruments.swap.pieces import Pieces, Slot
from evenhand.instruments.swap.verbs import after_they, asked_before, before_they

_TEXTS = InstrumentWords(__package__)

Words = Callable[[Slot], str | None]
TRAIT = "born on a Tuesday"  # our choice: it is true of one person in seven and says nothing
BEFORE_NOUN = "Tuesday-born"
_MAY_FOLLOW = ("pronoun", "object", "person", "member", "relative", "role", "group")


def written(pieces: Pieces, words: Words) -> str | CannotTell:
    """Write the text with the word of each slot, or say why it would not be right English."""
    filled = _said(pieces, words)
    return filled if isinstance(filled, CannotTell) else _joined(pieces, list(pieces.texts), filled)


def with_trait(pieces: Pieces, words: Words) -> str | CannotTell:
    """Write the text with a trait that has nothing to do with it, beside the first slot that can
    carry it."""
    filled = _said(pieces, words)
    if isinstance(filled, CannotTell):
        return filled
    texts = list(pieces.texts)
    for number, slot in enumerate(pieces.slots):
        after = texts[number + 1]
        case: Case = "upper" if slot.case == "upper" else "as written"
        if slot.slot in ("group", "age") and _people_follow(after):
            filled[number] = f"{in_case(BEFORE_NOUN, case)} {filled[number]}"
            return _joined(pieces, texts, filled)
        if slot.slot in _MAY_FOLLOW and _ends_here(after, slot):
            comma = "" if re.match(r"\s*(?:$|[^\w\s'’\"“(-])", after) else ","
            texts[number + 1] = f", {in_case(TRAIT, case)}{comma}{after}"
            return _joined(pieces, texts, filled)
    return CannotTell(_TEXTS("no_trait"))


def _people_follow(after: str) -> bool:
    return any(word.casefold() in PEOPLE for word in words_after(after, 0, 2))


def _attributive(after: str) -> bool:
    match = re.match(r"\s+(\w+)", after)
    return match is not None and match[1].casefold() not in FUNCTION


def _ends_here(after: str, slot: Slot) -> bool:
    """Say whether nothing that belongs to the word follows it: no 's, no noun."""
    if re.match(r"['’\-/]", after):
        return False
    match = re.match(r"\s+(\w+)", after)
    begins = match is not None and match[1].casefold() in FUNCTION and slot.slot != "group"
    return slot.slot == "pronoun" or match is None or begins


def _said(pieces: Pieces, words: Words) -> list[str] | CannotTell:
    filled = []
    for slot in pieces.slots:
        word = words(slot)
        if word is None:
            return CannotTell(_TEXTS("no_such_word", slot=slot.slot))
        filled.append(in_case(word, slot.case))
    return filled


def _joined(pieces: Pieces, texts: list[str], filled: list[str]) -> str | CannotTell:
    """Put texts and words together; what a word asks of its neighbours is done in the texts."""
    for number, slot in enumerate(pieces.slots):
        problem = None
        if slot.slot == "pronoun" and filled[number].casefold() == "they":
            problem = _agree(texts, filled, number)
        if not filled[number]:
            problem = _close_gap(texts, number)
        if problem is not None:
            return problem
        if filled[number].endswith(".") and re.match(r"\.(?!\.)", texts[number + 1]):
            texts[number + 1] = texts[number + 1][1:]  # "to A. B." ends a sentence as well
    for number, slot in enumerate(pieces.slots):
        _start(texts, filled, number, slot)
    for number in range(len(filled)):
        following = filled[number] + texts[number + 1] + "".join(filled[number + 1 : number + 2])
        texts[number] = with_article(texts[number], following.lstrip())
    return _so_far(texts, filled, len(filled))


def _so_far(texts: list[str], filled: list[str], stop: int) -> str:
    return "".join(texts[number] + filled[number] for number in range(stop)) + texts[stop]


def _start(texts: list[str], filled: list[str], number: int, slot: Slot) -> None:
    """Begin a sentence with a capital, where the text did so or is a template."""
    if slot.was and not slot.was[0].isupper():
        return
    if starts_sentence(_so_far(texts, filled, number)):
        if filled[number]:
            filled[number] = capitalised(filled[number])
        else:
            texts[number + 1] = capitalised(texts[number + 1])


def _agree(texts: list[str], filled: list[str], number: int) -> CannotTell | None:
    """Put the verb of "they" into the plural, whether it comes after or, asking, before."""
    before = _so_far(texts, filled, number)
    agreed = before_they(before)
    if isinstance(agreed, CannotTell):
        return agreed
    if agreed != before:
        texts[number] = agreed[len(before) - len(texts[number]) :]
        return None
    beyond = "".join(filled[at] + texts[at + 1] for at in range(number + 1, len(filled)))
    after = after_they(texts[number + 1], beyond, question=asked_before(before))
    if isinstance(after, CannotTell):
        return after
    texts[number + 1] = after
    return None


def _close_gap(texts: list[str], number: int) -> CannotTell | None:
    """Take away the space after a word that is left out; a noun must follow it."""
    after, last = texts[number + 1], number + 2 == len(texts)
    if not (_attributive(after) or (after.isspace() and not last)):
        return CannotTell(_TEXTS("hole"))
    texts[number + 1] = after.lstrip()
    return None
