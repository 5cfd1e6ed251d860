"""The versions of a prompt. A template ("Write to {name} about {possessive} raise") or a plain text
with spans is read as pieces: text that stays as it is, and slots that are filled. They are written
under each label, as its placebo, and without any label."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.data import (
    CounterfactualDesign,
    CounterfactualPrompt,
    Role,
    designed,
    read_prompts,
)
from evenhand.instruments.counterfactual.families import (
    NAME,
    NAMES,
    WHOLE_TEXT,
    AttributeLexicon,
    Forms,
    families,
)
from evenhand.instruments.counterfactual.grammar import (
    FUNCTION,
    PEOPLE,
    CannotTell,
    Case,
    after_they,
    asked_before,
    before_they,
    capitalised,
    case_of,
    foreign,
    in_case,
    starts_sentence,
    tokens,
    with_article,
    words_after,
)
from evenhand.instruments.counterfactual.placing import placed, placements
from evenhand.instruments.counterfactual.spans import UNSURE, Span, find, read_spans
from evenhand.instruments.files import InstrumentWords, names_in

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


def from_template(prompt: str, family: AttributeLexicon) -> Pieces | RefusedPrompt:
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


def _slot(written: str, family: AttributeLexicon) -> Slot | RefusedPrompt:
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
    texts: Sequence[str], slots: Sequence[Slot], family: AttributeLexicon
) -> RefusedPrompt | None:
    """Refuse a word of a label outside the slots.

    It would stay whatever the label is, and contradict all other labels. Words that may or may not
    state a label are left to the author of the prompt.

    Args:
        texts: Pieces of the prompt between its slots.
        slots: Slots between the pieces, one fewer than these.
        family: Family whose words are looked for.

    Returns:
        The refusal. None if no such word is found.
    """
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


def from_spans(
    prompt: str, family: AttributeLexicon, spans: tuple[Span, ...]
) -> Pieces | RefusedPrompt:
    """Read a plain text with marked spans; braces in it are only braces.

    Args:
        prompt: The text.
        family: Family to swap. Spans of other families are ignored.
        spans: Spans of the text.

    Returns:
        The pieces, or why the prompt cannot be swapped.
    """
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


def _unfit(prompt: str, family: AttributeLexicon, spans: list[Span]) -> str | None:
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


def _choices(span: Span, family: AttributeLexicon) -> str:
    entries = family.entries.get(tokens(span.text)[0].folded, []) if tokens(span.text) else []
    slots = sorted(
        {entry.slot for entry in entries if entry.form.casefold() == span.text.casefold()}
    )
    return " or ".join(slots) if len(slots) > 1 else f"{''.join(slots) or 'a label'} or not"


def _unknown(family: AttributeLexicon, spans: list[Span]) -> str | None:
    labels = [label.name for label in family.labels]
    for span in spans:
        if span.label not in labels:
            has = {"label": span.label, "labels": ", ".join(labels)}
            return _WORDS("unknown_label", family=family.name, **has)
        if span.slot not in family.slots:
            has = {"slot": span.slot, "slots": ", ".join(family.slots)}
            return _WORDS("unknown_span_slot", family=family.name, **has)
    return None


def _two_labels(family: AttributeLexicon, spans: list[Span]) -> str | None:
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


def _slot_of(span: Span, family: AttributeLexicon, people: list[_Person]) -> Slot | RefusedPrompt:
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
    """Find the number of the person whom a name means; a first name alone, or a last name, means
    the person who was named so earlier."""
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


# -- pieces become a text -------------------------------------------------------------------------


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
    """Write the text with an irrelevant trait, next to the first slot that can carry it."""
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


# -- every version of a prompt --------------------------------------------------------------------


DRAWN = (NAME, WHOLE_TEXT)  # slots with many words for one label: another one of them is a placebo


@dataclass(frozen=True)
class Version:
    """A version is one text of a prompt: whom it mentions, and what it is asked for."""

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


def make(
    prompt: str, family: AttributeLexicon, *, seed: int, key: str, spans: tuple[Span, ...] = ()
) -> MadeVersions | RefusedPrompt:
    """Make every version of a template, or of a plain text with spans.

    Which name is drawn depends on the seed and the prompt's key alone, and it is the name at the
    same place of every label's list, so that labels are compared on paired names.

    Args:
        prompt: Template with slots, or a plain text.
        family: Family to swap.
        seed: Seed for choosing names.
        key: Id of the prompt.
        spans: Spans of a plain text. Empty: the prompt is a template.

    Returns:
        The versions, or why the prompt cannot be swapped.
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


def _made(pieces: Pieces, family: AttributeLexicon, draw: _Draw) -> MadeVersions:
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
    forms: Forms, family: AttributeLexicon, draw: _Draw, *, placebo: bool = False
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


def _neutral(family: AttributeLexicon, draw: _Draw) -> Callable[[Slot], str | None]:
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


def _placebo(
    pieces: Pieces, family: AttributeLexicon, forms: Forms, draw: _Draw
) -> str | CannotTell:
    """Give another name of the same group, or where nothing is drawn, a trait that says nothing."""
    free_slots = {slot.slot for slot in pieces.slots if slot.place is None}
    if free_slots & set(NAMES):
        if draw.others is None:
            return CannotTell(_TEXTS("too_few_names"))
        return written(pieces, _words(forms, family, draw, placebo=True))
    if any(len(forms[slot]) > 1 for slot in free_slots & set(DRAWN)):
        return written(pieces, _words(forms, family, draw, placebo=True))
    return with_trait(pieces, _words(forms, family, draw))


def _drawn(pieces: Pieces, family: AttributeLexicon, seed: int, key: str) -> _Draw | RefusedPrompt:
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


def _others(family: AttributeLexicon, taken: list[int], number: int) -> tuple[int, ...] | None:
    """Give other names for the same people, of the same kind, or None if there are too few."""
    kinds, others = family.kinds, list(taken)
    for mine in taken:
        same = [index for index, kind in enumerate(kinds) if kind == kinds[mine]]
        free = _free(same, others, number)
        if free is None:
            return None
        others.append(free)
    return tuple(others[len(taken) :])


def _fitting(
    pieces: Pieces, family: AttributeLexicon, person: str
) -> tuple[int, ...] | RefusedPrompt:
    """Find the places of the names that fit the rest of the text: with "she" outside the slots of a
    family such as race, only names that go with "she"."""
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
    person: str, family: AttributeLexicon, kinds: list[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Give the pronouns of a person by name, if it is one of ours."""
    first = person.casefold().partition(" ")[0]
    for label in family.labels:
        for index, name in enumerate(label.forms[NAME]):
            if first and name.casefold().partition(" ")[0] == first:
                return kinds[index]
    return None


# -- the prompts of a file ------------------------------------------------------------------------


def families_named(names: str, file: Path | None) -> tuple[AttributeLexicon, ...]:
    """Read the families that are named with commas, and those of the user's file."""
    return families(tuple(names_in(names)), file)


def designed_by(options: Any) -> CounterfactualDesign:
    """Make every version of every prompt that these options name."""
    chosen = placements(options.place or "", options.places_file)
    if chosen and options.spans is not None:
        raise UserError("--place adds the person to prompts that mention nobody. Omit --spans")
    prompts = placed(read_prompts(options.prompts, options.text_column), chosen)
    marked = {} if options.spans is None else read_spans(options.spans)
    return designed_of(prompts, options, marked)


def designed_of(
    prompts: Sequence[CounterfactualPrompt],
    options: Any,
    marked: Mapping[str, tuple[Span, ...]] | None = None,
) -> CounterfactualDesign:
    """Make every version of these prompts.

    Args:
        prompts: The prompts.
        options: `attributes`, `attributes_file`, `placebo`, `repeats` and `sample_seed`.
        marked: The spans of each plain prompt, by its id. None: all prompts are templates.

    Returns:
        The versions to ask, and what was left out.

    Raises:
        UserError: If no attribute can be compared.
    """
    spans = marked or {}
    by_name = {
        family.name: family
        for family in families_named(options.attributes, options.attributes_file)
    }

    def made(
        prompt: CounterfactualPrompt, family: str
    ) -> tuple[Sequence[tuple[Role, str, str]], str] | str:
        problem = outside_the_slots((prompt.task,), (), by_name[family])
        if problem is not None:
            return f"in its task {problem.reason}"
        result = make(
            prompt.text,
            by_name[family],
            seed=options.sample_seed,
            key=prompt.id,
            spans=spans.get(prompt.id, ()),
        )
        if isinstance(result, RefusedPrompt):
            return result.reason
        texts: list[tuple[Role, str, str]]
        texts = [(each.role, each.label, each.text) for each in result.versions]
        if options.placebo == "again":
            texts = [entry for entry in texts if entry[0] != "placebo"]
            texts += [("placebo", label, text) for role, label, text in texts if role == "group"]
        there = {(role, label) for role, label, _ in texts}
        for label in by_name[family].labels:
            if not {("group", label.name), ("placebo", label.name)} <= there:
                return "; ".join(result.left_out) or f"no variant can be made for {label.name!r}"
        return texts, "; ".join(result.left_out).removeprefix("none: ")

    return designed(prompts, list(by_name), made, options.repeats)
