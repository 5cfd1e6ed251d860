"""Every version of a prompt: under each label, as its placebo, and without any label."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.families import NAME, NAMES, WHOLE_TEXT, Forms, SwapFamily
from evenhand.instruments.swap.grammar import CannotTell, foreign, tokens
from evenhand.instruments.swap.pieces import (
    Pieces,
    RefusedPrompt,
    Slot,
    from_spans,
    from_template,
)
from evenhand.instruments.swap.spans import Span
from evenhand.instruments.swap.writing import with_trait, written

_TEXTS = InstrumentWords(__package__)

__all__ = ["MadeVersions", "RefusedPrompt", "Version", "make", "versions"]

DRAWN = (NAME, WHOLE_TEXT)  # slots with many words for one label: another one of them is a placebo


@dataclass(frozen=True)
class Version:
    """A version is one text of a prompt: who is spoken of in it, and what it is asked for."""

    family: str
    label: str  # "" for none
    role: Literal["none", "group", "placebo"]
    of: str  # placebo: the label of which it is one; else ""
    text: str


@dataclass(frozen=True)
class MadeVersions:
    """What was made of a prompt, and which single versions were left out and why."""

    versions: tuple[Version, ...]
    left_out: tuple[str, ...]


def versions(
    prompt: str, family: SwapFamily, *, seed: int, key: str, spans: tuple[Span, ...] = ()
) -> tuple[Version, ...] | RefusedPrompt:
    """Give every version of a prompt, or say why there are none. `make` says as well which single
    versions were left out."""
    result = make(prompt, family, seed=seed, key=key, spans=spans)
    return result if isinstance(result, RefusedPrompt) else result.versions


def make(
    prompt: str, family: SwapFamily, *, seed: int, key: str, spans: tuple[Span, ...] = ()
) -> MadeVersions | RefusedPrompt:
    """Make every version of a template, or of a plain text where spans are given.

    Which name is drawn depends on the seed and the prompt's key alone, and it is the name at the
    same place of every label's list, so that labels are compared on paired names.
    """
    pieces = from_spans(prompt, family, spans) if spans else from_template(prompt, family)
    if isinstance(pieces, RefusedPrompt):
        return pieces
    language = foreign(" ".join(pieces.texts))
    if language is not None:
        return RefusedPrompt(_TEXTS("another_language", language=language))
    draw = _drawn(pieces, family, seed, key)
    return draw if isinstance(draw, RefusedPrompt) else _made(pieces, family, draw)


@dataclass(frozen=True)
class _Draw:
    """The places in the lists of words that were drawn."""

    names: tuple[int, ...]  # of each person
    others: tuple[int, ...] | None  # other names, for the placebo; None: there are too few
    number: int  # for all else that is drawn

    def place(self, slot: Slot, size: int, *, placebo: bool) -> int:
        if slot.place is not None:
            return slot.place
        if slot.slot in NAMES:
            return self.named(slot, placebo=placebo)
        moved = placebo and slot.slot in DRAWN
        return (self.number + moved) % size

    def named(self, slot: Slot, *, placebo: bool) -> int:
        places = self.others if placebo and self.others is not None else self.names
        return places[slot.person]


def _made(pieces: Pieces, family: SwapFamily, draw: _Draw) -> MadeVersions:
    out: list[Version] = []
    left: list[str] = []

    def add(label: str, role: Literal["none", "group", "placebo"], text: str | CannotTell) -> None:
        if isinstance(text, CannotTell):
            left.append(f"{role}{label and ' of ' + label}: {text.why}")
        else:
            of = label if role == "placebo" else ""
            out.append(Version(family.name, label, role, of, text))

    add("", "none", written(pieces, _neutral(family, draw)))
    for label in family.labels:
        words = _words(label.forms, family, draw)
        add(label.name, "group", written(pieces, words))
        add(label.name, "placebo", _placebo(pieces, family, label.forms, draw))
    return MadeVersions(tuple(out), tuple(left))


def _words(
    forms: Forms, family: SwapFamily, draw: _Draw, *, placebo: bool = False
) -> Callable[[Slot], str | None]:
    """Give the function that says the word of a slot for one label."""

    def word(slot: Slot) -> str | None:
        if slot.slot in family.shared:
            return family.shared[slot.slot][draw.named(slot, placebo=placebo)]
        words = forms[NAME if slot.slot in NAMES else slot.slot]
        return _part(words[draw.place(slot, len(words), placebo=placebo)], slot.slot)

    return word


def _part(word: str, slot: str) -> str | None:
    """Give the first or the last name of a whole one, where the slot asks for that."""
    if slot == "first_name":
        return word.split(" ", 1)[0]
    return word.partition(" ")[2] or None if slot == "last_name" else word


def _neutral(family: SwapFamily, draw: _Draw) -> Callable[[Slot], str | None]:
    def word(slot: Slot) -> str | None:
        if slot.slot in family.shared:
            return family.shared[slot.slot][draw.named(slot, placebo=False)]
        if slot.slot in NAMES:
            words = family.none.get(slot.slot) or family.none.get(NAME, ())
            name = words[slot.person % len(words)] if words else None
            return name if slot.slot in family.none else name and _part(name, slot.slot)
        words = family.none.get(slot.slot, ())
        return words[draw.place(slot, len(words), placebo=False) % len(words)] if words else None

    return word


def _placebo(pieces: Pieces, family: SwapFamily, forms: Forms, draw: _Draw) -> str | CannotTell:
    """Give another name of the same group, or where nothing is drawn, a trait that says nothing."""
    free_slots = {slot.slot for slot in pieces.slots if slot.place is None}
    if free_slots & set(NAMES):
        if draw.others is None:
            return CannotTell(_TEXTS("too_few_names"))
        return written(pieces, _words(forms, family, draw, placebo=True))
    if any(len(forms[slot]) > 1 for slot in free_slots & set(DRAWN)):
        return written(pieces, _words(forms, family, draw, placebo=True))
    return with_trait(pieces, _words(forms, family, draw))


def _drawn(pieces: Pieces, family: SwapFamily, seed: int, key: str) -> _Draw | RefusedPrompt:
    digest = hashlib.sha256(f"{seed}\0{key}\0{family.name}".encode()).digest()
    number = int.from_bytes(digest[:8])
    if NAME not in family.slots:
        return _Draw((), None, number)
    fitting = [_fitting(pieces, family, person) for person in pieces.people]
    taken: list[int] = []
    for places in fitting:
        if isinstance(places, RefusedPrompt):
            return places
        free = _free(places, taken, number)
        if free is None:
            people = len(pieces.people)
            return RefusedPrompt(_TEXTS("people_too_few_names", people=people, family=family.name))
        taken.append(free)
    return _Draw(tuple(taken), _others(family, taken, number), number)


def _free(places: Sequence[int], taken: Sequence[int], number: int) -> int | None:
    """Give the first place from the drawn one on that nobody has."""
    start = number % len(places)
    turned = (*places[start:], *places[:start])
    return next((index for index in turned if index not in taken), None)


def _others(family: SwapFamily, taken: list[int], number: int) -> tuple[int, ...] | None:
    """Give other names for the same people, of the same kind, or None if there are too few."""
    kinds, others = family.kinds, list(taken)
    for mine in taken:
        same = [index for index, kind in enumerate(kinds) if kind == kinds[mine]]
        free = _free(same, others, number)
        if free is None:
            return None
        others.append(free)
    return tuple(others[len(taken) :])


def _fitting(pieces: Pieces, family: SwapFamily, person: str) -> tuple[int, ...] | RefusedPrompt:
    """Give the places of the names that fit what the text says beside them: with "she" outside the
    slots of a family such as race, only names that go with "she"."""
    size = len(family.labels[0].forms[NAME])
    kinds = [tuple(words[index] for words in family.shared.values()) for index in range(size)]
    if len(set(kinds)) < 2:
        return tuple(range(size))
    kind = _kind_of(person, family, kinds)
    if kind is None:
        text_words = {token.folded for text in pieces.texts for token in tokens(text)}
        matched = {candidate for candidate in kinds if text_words & set(candidate)}
        if person and len(matched) != 1:
            return RefusedPrompt(_TEXTS("which_name", name=person))
        if len(matched) > 1:
            return RefusedPrompt(_TEXTS("two_pronouns"))
        kind = next(iter(matched), None)
    return tuple(index for index in range(size) if kind in (None, kinds[index]))


def _kind_of(
    person: str, family: SwapFamily, kinds: list[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Give the pronouns of a person by name, if it is one of ours."""
    first = person.casefold().partition(" ")[0]
    for label in family.labels:
        for index, name in enumerate(label.forms[NAME]):
            if first and name.casefold().partition(" ")[0] == first:
                return kinds[index]
    return None
