"""A family is a set of labels, such as woman and man, with the words that say each of them.

Families are data: `families/*.toml` are ours, and a TOML of the same shape holds the user's own.

    [shift]
    source = "our own staff list"
    [shift.none]                       # the neutral words; "" says nothing at all
    group = [""]
    [shift.labels.day]
    group = ["day-shift"]              # each label has the same slots with as many words, since
    [shift.labels.night]               # word 3 of one label answers to word 3 of every other
    group = ["night-shift"]
"""

import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from evenhand.core.errors import UserError, choices_for
from evenhand.instruments.counterfactual.grammar import tokens

NAME = "name"
PARTS_OF_NAME = ("first_name", "last_name")  # slots that a family with names has of itself
WHOLE_TEXT = "text"  # a slot for whole requests, as in a dialect; never found in a text
NAMES = (NAME, *PARTS_OF_NAME)
Forms = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Label:
    """A label is one group of a family, with the words that say it: slot → words."""

    name: str
    forms: Forms
    found: Forms = field(default_factory=dict)  # words that are recognised in a text, never written


@dataclass(frozen=True)
class LexiconEntry:
    """An entry is a word or phrase by which a label is found in a text."""

    words: tuple[str, ...]  # case-folded
    tail: str  # what stands after the last word, as the stop of "Ms."
    form: str
    slot: str
    label: str


@dataclass(frozen=True)
class AttributeLexicon:
    """A family is a set of labels of which one is said at a time."""

    name: str
    labels: tuple[Label, ...]
    source: str
    none: Forms = field(default_factory=dict)  # the neutral words of a slot
    shared: Forms = field(default_factory=dict)  # what goes with name 1, 2, … of every label
    only_of_people: frozenset[str] = frozenset()  # "black" is a label of people, not of a box
    name_kinds: tuple[str, ...] = ()  # of name 1, 2, …: a placebo is another name of the same kind

    @property
    def slots(self) -> tuple[str, ...]:
        """Give the slots that a template may name."""
        label_slots = tuple(self.labels[0].forms)
        return (*label_slots, *self.shared, *(PARTS_OF_NAME if NAME in label_slots else ()))

    @property
    def kinds(self) -> list[tuple[str, ...]]:
        """Give the kind of each name: what it shares with others in addition to its label."""
        shared = [*self.shared.values(), *([self.name_kinds] if self.name_kinds else [])]
        names = self.labels[0].forms.get(NAME, ())
        return [tuple(words[index] for words in shared) for index in range(len(names))]

    @cached_property
    def entries(self) -> dict[str, list[LexiconEntry]]:
        """Give what can be found in a text, by its first word."""
        by_word: dict[str, list[LexiconEntry]] = {}
        for label in self.labels:
            for slot, form in _findable(label):
                form_tokens = tokens(form)
                tail = form[form_tokens[-1].end :]
                words = tuple(token.folded for token in form_tokens)
                by_word.setdefault(words[0], []).append(
                    LexiconEntry(words, tail, form, slot, label.name)
                )
        return by_word


def _findable(label: Label) -> Iterator[tuple[str, str]]:
    firsts = {name.split(" ", 1)[0]: None for name in label.forms.get(NAME, ())}
    yield from (("first_name", first) for first in firsts)
    for slot, form in _all_words(label):
        yielded = slot == "first_name" and form in firsts
        if slot != WHOLE_TEXT and tokens(form) and not yielded:
            yield slot, form


def families(names: tuple[str, ...], file: Path | None = None) -> tuple[AttributeLexicon, ...]:
    """Give the families of these names, ours or the user's, and all others of the user's file."""
    theirs = {} if file is None else _read(file)
    taken = sorted(set(theirs) & set(ours()))
    if taken:
        raise UserError(
            f"{file}: the attribute {taken[0]!r} is built in. Choose another name, so that "
            "reports cannot confuse the two"
        )
    available = ours() | theirs
    unknown = [name for name in names if name not in available]
    if unknown:
        raise UserError(
            f"unknown attribute {unknown[0]!r}. {choices_for(unknown[0], available)}. "
            "Define other attributes in your own TOML file"
        )
    chosen = dict.fromkeys((*names, *theirs))
    if not chosen:
        raise UserError(f"no attribute selected. Available: {', '.join(available)}")
    return tuple(available[name] for name in chosen)


@cache
def ours() -> dict[str, AttributeLexicon]:
    """Give the families that come with evenhand, by name."""
    folder = resources.files("evenhand.instruments.counterfactual").joinpath("families")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=str)
    return {
        name: family
        for file in files
        for name, family in _parsed(file.read_text("utf-8"), file.name).items()
    }


def _plain(word: str) -> str:
    if not word.isprintable():
        raise ValueError("it contains a control character or an invisible character. Remove it")
    if word != word.strip():
        raise ValueError("it begins or ends with a space. Remove the space")
    return unicodedata.normalize("NFC", word)


_LONGEST = 2000  # our choice: room for a whole request in a dialect, not for a book
_Said = Annotated[str, Field(max_length=_LONGEST), AfterValidator(_plain)]
_Word = Annotated[_Said, Field(min_length=1)]
_LabelName = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(_plain)]
_Slot = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,39}$")]
_Words = Annotated[list[_Word], Field(min_length=1, max_length=500)]
_Neutral = Annotated[list[_Said], Field(min_length=1, max_length=500)]


class _FamilyEntry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    source: _Word
    labels: Annotated[dict[_LabelName, dict[_Slot, _Words]], Field(min_length=2, max_length=50)]
    none: dict[_Slot, _Neutral] = {}
    shared: dict[_Slot, _Words] = {}
    found: dict[_LabelName, dict[_Slot, _Words]] = {}
    only_of_people: list[_Word] = []
    name_kinds: list[_Word] = []


_FORM = (
    'an attribute is [NAME] with source = "…", followed by [NAME.labels.LABEL] '
    'with lines like group = ["…"]'
)
_FAMILY_NAME = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]


class _FamiliesFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    families: Annotated[dict[_FAMILY_NAME, _FamilyEntry], Field(min_length=1, max_length=50)]


def _read(path: Path) -> dict[str, AttributeLexicon]:
    try:
        return _parsed(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid UTF-8: {error}") from None


def _parsed(text: str, where: str) -> dict[str, AttributeLexicon]:
    try:
        written = _FamiliesFile.model_validate({"families": tomllib.loads(text)}).families
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"][1:])) or "the file"
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{where}: {location}: {message}; {_FORM}") from None
    except (ValueError, RecursionError) as error:  # no TOML, or a number or date that is none
        raise UserError(f"{where} is not TOML: {str(error)[:200]}; {_FORM}") from None
    return {name: _family(name, family, f"{where}: {name}") for name, family in written.items()}


def _family(name: str, written: _FamilyEntry, where: str) -> AttributeLexicon:
    """Make a family of what was written, or say where its words do not answer to each other."""
    _refuse_unequal(written, where)
    for label, slots in written.found.items():
        if label not in written.labels:
            raise UserError(
                f"{where}.found: unknown label {label!r}. Use a label of this attribute"
            )
        for slot in slots:
            _refuse_unknown_slot(slot, written, f"{where}.found.{label}")
    for slot in written.none:
        _refuse_unknown_slot(slot, written, f"{where}.none")
    labels = tuple(
        Label(label, _frozen(forms), _frozen(written.found.get(label, {})))
        for label, forms in written.labels.items()
    )
    _refuse_twice(labels, where)
    people = frozenset(word.casefold() for word in written.only_of_people)
    none, shared = _frozen(written.none), _frozen(written.shared)
    kinds = tuple(written.name_kinds)
    return AttributeLexicon(name, labels, written.source, none, shared, people, kinds)


def _frozen(forms: Mapping[str, list[str]]) -> Forms:
    return {slot: tuple(words) for slot, words in forms.items()}


def _refuse_unequal(written: _FamilyEntry, where: str) -> None:
    """Refuse lists that cannot answer to each other word by word."""
    first, *others = written.labels
    sizes = _sizes(written.labels[first])
    for part in PARTS_OF_NAME:
        if part in sizes or part in written.shared:
            raise UserError(
                f"{where}: {part} is part of the placeholder name. Give full names, as in "
                f'{NAME} = ["Ann Lee"]. Templates can use {{first_name}} and {{last_name}}'
            )
    if not sizes:
        raise UserError(f"{where}.labels.{first} contains no words; {_FORM}")
    for label in others:
        here = _sizes(written.labels[label])
        for slot in sorted(sizes.keys() | here.keys()):
            if sizes.get(slot) != here.get(slot):
                raise UserError(
                    f"{where}.labels: {first} has {sizes.get(slot, 0)} words for {slot}, but "
                    f"{label} has {here.get(slot, 0)}. Words correspond by position, so give each "
                    "label the same number"
                )
    _refuse_unequal_beside(written, sizes, where)


def _sizes(forms: Mapping[str, list[str]]) -> dict[str, int]:
    return {slot: len(words) for slot, words in forms.items()}


def _refuse_unequal_beside(written: _FamilyEntry, sizes: Mapping[str, int], where: str) -> None:
    for slot, words in written.shared.items():
        if slot in sizes or len(words) != sizes.get(NAME):
            raise UserError(
                f"{where}.shared.{slot}: shared words correspond to names and cannot be a "
                f"placeholder of a label. Give {sizes.get(NAME, 0)} words, or move them to the "
                "labels"
            )
    if written.name_kinds and len(written.name_kinds) != sizes.get(NAME):
        raise UserError(
            f"{where}.name_kinds: give a kind for each of the {sizes.get(NAME, 0)} names"
        )
    for slot in written.none.keys() & sizes.keys():
        if slot != NAME and len(written.none[slot]) not in (1, sizes[slot]):
            raise UserError(
                f"{where}.none.{slot}: give a single neutral word, or {sizes[slot]} words"
            )


def _refuse_unknown_slot(slot: str, written: _FamilyEntry, where: str) -> None:
    slots = next(iter(written.labels.values()))
    available = [*slots, *(PARTS_OF_NAME if NAME in slots else ())]
    if slot not in available:
        raise UserError(f"{where}: unknown placeholder {slot!r}. Available: {', '.join(available)}")


def _refuse_twice(labels: tuple[Label, ...], where: str) -> None:
    """Refuse a word that stands for two labels, or twice for one: it could not be swapped back."""
    if len({label.name.casefold() for label in labels}) < len(labels):
        raise UserError(f"{where}: two labels differ only in capitalization. Rename either of them")
    label_by_word: dict[tuple[str, str], str] = {}
    for label in labels:
        for slot, word in _all_words(label):
            before = label_by_word.setdefault((slot, word.casefold()), label.name)
            if before != label.name:
                raise UserError(
                    f"{where}: {word!r} is a word for {before} and for {label.name} ({slot}). A "
                    "word must have a single meaning: remove it from either of them"
                )
        for slot, words in label.forms.items():
            twice = [word for word in words if words.count(word) > 1]
            if twice:
                raise UserError(
                    f"{where}.labels.{label.name}.{slot}: {twice[0]!r} is duplicated. Remove the "
                    "duplicate"
                )


def _all_words(label: Label) -> list[tuple[str, str]]:
    forms = [*label.forms.items(), *label.found.items()]
    return [(slot, word) for slot, words in forms for word in words]
