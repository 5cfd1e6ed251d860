"""Pieces of a prompt become a text: words in their capitals, "a" or "an", verbs after "they"."""

import re
from collections.abc import Callable

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

Words = Callable[[Slot], str | None]
TRAIT = "born on a Tuesday"  # our choice: it is true of one person in seven and says nothing
BEFORE_NOUN = "Tuesday-born"
_MAY_FOLLOW = ("pronoun", "object", "person", "member", "relative", "role", "group")


def written(pieces: Pieces, words: Words) -> str | CannotTell:
    """Write the text with the word of each slot, or say why it would not be right English."""
    said = _said(pieces, words)
    return said if isinstance(said, CannotTell) else _joined(pieces, list(pieces.texts), said)


def with_trait(pieces: Pieces, words: Words) -> str | CannotTell:
    """Write the text with a trait that has nothing to do with it, beside the first slot that can
    carry it."""
    said = _said(pieces, words)
    if isinstance(said, CannotTell):
        return said
    texts = list(pieces.texts)
    for number, slot in enumerate(pieces.slots):
        after = texts[number + 1]
        case: Case = "upper" if slot.case == "upper" else "as written"
        if slot.slot in ("group", "age") and _people_follow(after):
            said[number] = f"{in_case(BEFORE_NOUN, case)} {said[number]}"
            return _joined(pieces, texts, said)
        if slot.slot in _MAY_FOLLOW and _ends_here(after, slot):
            comma = "" if re.match(r"\s*(?:$|[^\w\s'’\"“(-])", after) else ","
            texts[number + 1] = f", {in_case(TRAIT, case)}{comma}{after}"
            return _joined(pieces, texts, said)
    return CannotTell("no slot can carry an irrelevant trait, and there is no name to vary")


def _people_follow(after: str) -> bool:
    return any(word.casefold() in PEOPLE for word in words_after(after, 0, 2))


def _attributive(after: str) -> bool:
    found = re.match(r"\s+(\w+)", after)
    return found is not None and found[1].casefold() not in FUNCTION


def _ends_here(after: str, slot: Slot) -> bool:
    """Say whether nothing that belongs to the word follows it: no 's, no noun."""
    if re.match(r"['’\-/]", after):
        return False
    found = re.match(r"\s+(\w+)", after)
    begins = found is not None and found[1].casefold() in FUNCTION and slot.slot != "group"
    return slot.slot == "pronoun" or found is None or begins


def _said(pieces: Pieces, words: Words) -> list[str] | CannotTell:
    said = []
    for slot in pieces.slots:
        word = words(slot)
        if word is None:
            return CannotTell(f"there is no such word for {{{slot.slot}}}")
        said.append(in_case(word, slot.case))
    return said


def _joined(pieces: Pieces, texts: list[str], said: list[str]) -> str | CannotTell:
    """Put texts and words together; what a word asks of its neighbours is done in the texts."""
    for number, slot in enumerate(pieces.slots):
        problem = None
        if slot.slot == "pronoun" and said[number].casefold() == "they":
            problem = _agree(texts, said, number)
        if not said[number]:
            problem = _close_gap(texts, number)
        if problem is not None:
            return problem
        if said[number].endswith(".") and re.match(r"\.(?!\.)", texts[number + 1]):
            texts[number + 1] = texts[number + 1][1:]  # "to A. B." ends a sentence as well
    for number, slot in enumerate(pieces.slots):
        _start(texts, said, number, slot)
    for number in range(len(said)):
        following = said[number] + texts[number + 1] + "".join(said[number + 1 : number + 2])
        texts[number] = with_article(texts[number], following.lstrip())
    return _so_far(texts, said, len(said))


def _so_far(texts: list[str], said: list[str], stop: int) -> str:
    return "".join(texts[number] + said[number] for number in range(stop)) + texts[stop]


def _start(texts: list[str], said: list[str], number: int, slot: Slot) -> None:
    """Begin a sentence with a capital, where the text did so or is a template."""
    if slot.was and not slot.was[0].isupper():
        return
    if starts_sentence(_so_far(texts, said, number)):
        if said[number]:
            said[number] = capitalised(said[number])
        else:
            texts[number + 1] = capitalised(texts[number + 1])


def _agree(texts: list[str], said: list[str], number: int) -> CannotTell | None:
    """Put the verb of "they" into the plural, whether it comes after or, asking, before."""
    before = _so_far(texts, said, number)
    asked = before_they(before)
    if isinstance(asked, CannotTell):
        return asked
    if asked != before:
        texts[number] = asked[len(before) - len(texts[number]) :]
        return None
    beyond = "".join(said[at] + texts[at + 1] for at in range(number + 1, len(said)))
    after = after_they(texts[number + 1], beyond, asked=asked_before(before))
    if isinstance(after, CannotTell):
        return after
    texts[number + 1] = after
    return None


def _close_gap(texts: list[str], number: int) -> CannotTell | None:
    """Take away the space after a word that is left out; a noun must follow it."""
    after, last = texts[number + 1], number + 2 == len(texts)
    if not (_attributive(after) or (after.isspace() and not last)):
        return CannotTell("without the word a hole would be left in the sentence")
    texts[number + 1] = after.lstrip()
    return None
