"""The pieces of a prompt: text that stays as it is, and slots that are filled.

A template ("Write to {name} about {possessive} raise") and a plain text with spans become the same
list: text, slot, text, …, text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.instruments.files import InstrumentWords
from evenhand.instruments.swap.families import NAME, NAMES, SwapFamily
from evenhand.instruments.swap.grammar import Case, case_of, tokens
from evenhand.instruments.swap.spans import UNSURE, Span, find

_WORDS = InstrumentWords(__package__)
PRONOUNS = ("pronoun", "object", "possessive", "possessive_pronoun", "reflexive")


@dataclass(frozen=True)
class RefusedPrompt:
    """A prompt of which no versions can be made, and why."""

    reason: str


@dataclass(frozen=True)
class Slot:
    """A slot is filled with a word of each label in turn."""

    slot: str
    place: int | None  # which of the words; None: the one that is drawn
    case: Case
    person: int = 0  # the first person who is named, the second, …
    was: str = ""  # what stood there in a plain text


@dataclass(frozen=True)
class Pieces:
    """The pieces of a prompt, and who is named in it."""

    texts: tuple[str, ...]  # one more than there are slots
    slots: tuple[Slot, ...]
    people: tuple[str, ...] = ("",)  # the name that each person had in a plain text


def _refused(key: str, **values: Any) -> RefusedPrompt:
    return RefusedPrompt(_WORDS(key, **values))


_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def from_template(prompt: str, family: SwapFamily) -> Pieces | RefusedPrompt:
    """Read a template; "{{" and "}}" are written for braces."""
    texts: list[str] = []
    slots: list[Slot] = []
    text, at = "", 0
    for match in _BRACES.finditer(prompt):
        text, at = text + prompt[at : match.start()], match.end()
        if match[0] in ("{{", "}}"):
            text += match[0][0]
            continue
        if match[1] is None:
            return _refused("not_a_slot", written=match[0], place=match.start() + 1,
                            doubled=match[0] * 2)  # fmt: skip
        slot = _slot(match[1], family)
        if isinstance(slot, RefusedPrompt):
            return slot
        texts, slots, text = [*texts, text], [*slots, slot], ""
    if not slots:
        return _refused("no_slot", family=family.name)
    texts = [*texts, text + prompt[at:]]
    problem = outside_the_slots(texts, slots, family) or _two_people(texts, slots)
    return problem or Pieces(tuple(texts), tuple(slots))


def _slot(written: str, family: SwapFamily) -> Slot | RefusedPrompt:
    case: Case = "as written"
    if written[:1].isupper():
        case = "upper" if written.isupper() and len(written) > 1 else "capital"
    if written.casefold() in family.slots:
        return Slot(written.casefold(), None, case)
    meant = {
        (slot, index, how)
        for label in family.labels
        for slot, words in label.forms.items()
        for index, word in enumerate(words)
        if (how := case_of(written, word)) is not None
    }
    if len(meant) == 1 and not written.casefold().startswith("?"):
        return Slot(*meant.pop())
    which = f"may be {' or '.join(sorted(m[0] for m in meant))}" if meant else "is not known"
    slots = ", ".join(f"{{{slot}}}" for slot in family.slots)
    return _refused("unknown_slot", written=written[:60], which=which, family=family.name,
                    slots=slots)  # fmt: skip


# What stands for a slot while a template is searched: a name, a person, or a word of neither kind.
_PERSONS = ("person", "persons", "relative", "relatives", "role", "member", "members")
_MASKS = {**dict.fromkeys(NAMES, "Xy"), **dict.fromkeys(_PERSONS, "person")}


def outside_the_slots(
    texts: Sequence[str], slots: Sequence[Slot], family: SwapFamily
) -> RefusedPrompt | None:
    """Refuse a word of a label outside the slots: it would stay whatever the label is, and
    contradict all others. What may be such a word or not is left to whoever wrote it."""
    pronouns = {
        word for label in family.labels for slot in PRONOUNS for word in label.forms.get(slot, ())
    }
    outside = [token.text for text in texts for token in tokens(text) if token.folded in pronouns]
    masked, masks = texts[0], []
    for slot, text in zip(slots, texts[1:], strict=True):
        masks.append(len(masked))
        masked += _MASKS.get(slot.slot, "xy") + text
    for span in find(masked, (family,)):
        end = min([span.end, *(at for at in masks if at >= span.start)])
        outside += [masked[span.start : end].strip()] if span.slot != UNSURE else []
    word = next(filter(None, outside), None)
    return None if word is None else _refused("outside", word=word)


_JOINED = re.compile(
    r"(?:['’]s)?\s*(?:(?:,|&|/|\+|\b(?:and|or|nor|versus|vs|than|with|against|to|from)\b\.?)\s*)+",
    re.IGNORECASE,
)


def _two_people(texts: Sequence[str], slots: Sequence[Slot]) -> RefusedPrompt | None:
    """Refuse "{name} and {name}": every {name} of a template is the same person."""
    before, between = "", ""
    for slot, text in zip(slots, texts[1:], strict=True):
        if slot.slot in NAMES and slot.slot == before and _JOINED.fullmatch(between):
            return _refused("two_people", slot=before)
        if slot.slot != "title":
            before, between = slot.slot, ""
        between += text
    return None


def from_spans(prompt: str, family: SwapFamily, spans: tuple[Span, ...]) -> Pieces | RefusedPrompt:
    """Read a plain text in which spans were marked; braces in it are only braces."""
    marked = sorted(
        (span for span in spans if span.family == family.name), key=lambda span: span.start
    )
    problem = _unfit(prompt, family, marked)
    if problem is not None:
        return RefusedPrompt(problem)
    texts, slots, at = [], [], 0
    people: list[_Person] = []
    for span in marked:
        slot = _slot_of(span, family, people)
        if isinstance(slot, RefusedPrompt):
            return slot
        slots.append(slot)
        texts.append(prompt[at : span.start])
        at = span.end
    names = tuple(person.text for person in people) or ("",)
    return Pieces((*texts, prompt[at:]), tuple(slots), names)


def _unfit(prompt: str, family: SwapFamily, spans: list[Span]) -> str | None:
    """Say why spans cannot be used as they are, if so."""
    if not spans:
        return _WORDS("no_span", family=family.name)
    last = 0
    for span in spans:
        where = {"span": span.text[:60], "place": span.start}
        if prompt[span.start : span.end] != span.text or not span.text or span.start < 0:
            return _WORDS("moved_span", **where)
        if span.start < last:
            return _WORDS("two_spans", **where)
        last = span.end
        if not tokens(span.text):
            return _WORDS("no_word", **where)
        if span.slot == UNSURE:
            choices = _choices(span, family)
            return _WORDS("unsure", span=span.text, place=span.start, choices=choices)
    return _unknown(family, spans) or _two_labels(family, spans)


def _choices(span: Span, family: SwapFamily) -> str:
    entries = family.entries.get(tokens(span.text)[0].folded, []) if tokens(span.text) else []
    slots = sorted(
        {entry.slot for entry in entries if entry.form.casefold() == span.text.casefold()}
    )
    return " or ".join(slots) if len(slots) > 1 else f"{''.join(slots) or 'a label'} or not"


def _unknown(family: SwapFamily, spans: list[Span]) -> str | None:
    labels = [label.name for label in family.labels]
    for span in spans:
        if span.label not in labels:
            has = {"label": span.label, "labels": ", ".join(labels)}
            return _WORDS("unknown_label", family=family.name, **has)
        if span.slot not in family.slots:
            has = {"slot": span.slot, "slots": ", ".join(family.slots)}
            return _WORDS("unknown_span_slot", family=family.name, **has)
    return None


def _two_labels(family: SwapFamily, spans: list[Span]) -> str | None:
    first = spans[0]
    other = next((span for span in spans if span.label != first.label), None)
    if other is None:
        return None
    return _WORDS("two_labels", family=family.name, first=first.text, first_label=first.label,
                  other=other.text, other_label=other.label)  # fmt: skip


@dataclass
class _Person:
    first: str
    last: str
    text: str

    def may_be(self, first: str, last: str) -> bool:
        same = (first and first == self.first) or (last and last == self.last)
        apart = (first and self.first and first != self.first) or (
            last and self.last and last != self.last
        )
        return bool(same and not apart)


def _slot_of(span: Span, family: SwapFamily, people: list[_Person]) -> Slot | RefusedPrompt:
    if span.slot in NAMES:
        case: Case = "upper" if span.text.isupper() and len(span.text) > 1 else "as written"
        return Slot(span.slot, None, case, _who(span, people), span.text)
    if span.slot == "pronoun" and span.text.casefold() == "they":
        return _refused("they")
    label = next(label for label in family.labels if label.name == span.label)
    words = [*label.forms.get(span.slot, ()), *label.found.get(span.slot, ())]
    for position, word in enumerate(words):
        how = case_of(span.text, word)
        if how is not None:
            index = position if position < len(label.forms[span.slot]) else 0
            return Slot(span.slot, index, how, 0, span.text)
    return _refused("not_a_word", span=span.text, label=span.label, slot=span.slot,
                    words=", ".join(words))  # fmt: skip


def _who(span: Span, people: list[_Person]) -> int:
    """Give the number of the person whom a name means; a first name alone, or a last name, means
    whoever was named so before."""
    words = [token.folded for token in tokens(span.text)]
    first = words[0] if span.slot != "last_name" else ""
    last = " ".join(words[1:]) if span.slot == NAME else ""
    if span.slot == "last_name":
        last = " ".join(words)
    for number, person in enumerate(people):
        if person.may_be(first, last):
            person.first, person.last = person.first or first, person.last or last
            person.text = span.text if span.slot == NAME else person.text
            return number
    people.append(_Person(first, last, span.text))
    return len(people) - 1
