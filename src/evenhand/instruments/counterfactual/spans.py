"""Spans are the places in a plain prompt that mention a person or group: found, checked, corrected.

They are stored in a file of one JSON object per span, so that a person can delete or correct a line
before anything is paid for:

    {"id": "7", "start": 0, "end": 3, "slot": "pronoun", "label": "woman", "family": "gender",
     "text": "She"}
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field

from evenhand.core.new_files import write_new
from evenhand.instruments.counterfactual.families import NAME, NAMES, AttributeLexicon, LexiconEntry
from evenhand.instruments.counterfactual.grammar import (
    FUNCTION,
    NAME_WORDS,
    PEOPLE,
    THINGS,
    Case,
    Token,
    case_of,
    first_name,
    foreign,
    group_or_member,
    her,
    his,
    of_people,
    surname_after,
    tokens,
    words_after,
)
from evenhand.runs.runners.source import read_jsonl

UNSURE = "?"  # the slot of a span about which a person must decide


@dataclass(frozen=True)
class Span:
    """A span is a piece of a prompt that says a label: `text` stands from `start` to `end`.

    A slot of "?" says that a person must decide: give it a slot, or delete it.
    """

    start: int
    end: int
    slot: str
    label: str
    family: str
    text: str


def find(text: str, families: tuple[AttributeLexicon, ...]) -> tuple[Span, ...]:
    """Find what says a label of these families in an English text; in another language nothing is
    found."""
    if foreign(text):
        return ()
    hidden = [match.span() for match in _ADDRESSES.finditer(text)]
    words = [
        token
        for token in tokens(text)
        if not any(start <= token.start < end for start, end in hidden)
    ]
    return tuple(span for family in families for span in _of_family(text, words, family))


_ADDRESSES = re.compile(r"(?:https?://|www\.)\S+|\S+@\S+|[@#]\w+")


def _of_family(text: str, words: list[Token], family: AttributeLexicon) -> list[Span]:
    spans: list[Span] = []
    at = 0
    for number, token in enumerate(words):
        if token.start < at:
            continue
        span = _span(text, words[number:], family)
        if span is not None:
            spans.append(span)
            at = span.end
    return _of_the_same_people(words, spans)


def _span(text: str, words: list[Token], family: AttributeLexicon) -> Span | None:
    """Give the span that begins at the first of these words, the longest one if there are some."""
    matched = [
        (end, entry)
        for entry in family.entries.get(words[0].folded, ())
        if (end := _end(text, words, entry)) is not None
    ]
    if not matched:
        return None
    end = max(matched)[0] if len({candidate[0] for candidate in matched}) > 1 else matched[0][0]
    entries = [entry for there, entry in matched if there == end]
    start = words[0].start
    slot, end = _read(text, start, end, entries, family)
    if not slot:
        return None
    return Span(start, end, slot, entries[0].label, family.name, text[start:end])


def _end(text: str, words: list[Token], entry: LexiconEntry) -> int | None:
    """Say where an entry ends that begins at the first of these words, or None if it does not."""
    taken = words[: len(entry.words)]
    if tuple(token.folded for token in taken) != entry.words:
        return None
    end = taken[-1].end + len(entry.tail)
    matched_text = text[taken[0].start : end]
    return end if case_of(matched_text, entry.form) in _CASES[entry.slot in NAMES] else None


_CASES: dict[bool, tuple[Case | None, ...]] = {
    True: ("as written", "upper"),  # a name has its capital
    False: ("as written", "upper", "capital", "lower"),
}


def _read(
    text: str, start: int, end: int, entries: list[LexiconEntry], family: AttributeLexicon
) -> tuple[str, int]:
    """Give the slot of a word where it stands, and where it ends; no slot where it is only a
    word."""
    before, after, word = text[:start], text[end:], text[start:end]
    if word.casefold() in family.only_of_people and not of_people(before, after):
        return "", end
    if _INSIDE_BEFORE.search(before[-2:]) or _INSIDE_AFTER.match(after):
        return UNSURE, end
    slots = {entry.slot for entry in entries}
    if "first_name" in slots:
        return _first_name(word, before, after, end)
    if "title" in slots and not _before_a_name(word, after):
        return "", end
    if slots <= _LIKE_NAMES and _named(word, after):
        return ("" if first_name(word, before, after) == "name" else UNSURE), end
    if len({entry.label for entry in entries}) > 1:
        return UNSURE, end
    if len(slots) == 1:
        return slots.pop(), end
    rule = _RULES.get(frozenset(slots))
    return (rule and rule(before, after)) or UNSURE, end


_INSIDE_BEFORE = re.compile(r"\w[-‐‑'’]$")  # "non-Muslim", "d'Emily"
_INSIDE_AFTER = re.compile(r"[-‐‑]\w|\.[^\W\d_]")  # "woman-owned", "Emily.Walsh"
_LIKE_NAMES = frozenset(("group", "member"))
_RULES: dict[frozenset[str], Callable[[str, str], str | None]] = {
    frozenset(("object", "possessive")): her,
    frozenset(("possessive", "possessive_pronoun")): his,
    frozenset(("group", "member")): group_or_member,
}


def _before_a_name(title: str, after: str) -> bool:
    """Say whether a title stands before a name: "Miss Ito", not "Miss it", and no "MS Office"."""
    letters = title.isupper() and not title.endswith(".")
    return (
        title[0].isupper()
        and not letters
        and bool(re.match(r"\s", after))
        and (after.lstrip()[:1].isupper())
    )


def _first_name(word: str, before: str, after: str, end: int) -> tuple[str, int]:
    means = first_name(word, before, after)
    if means != "name":
        return ("" if means == "word" else UNSURE), end
    follows = next(words_after(after, 0, 1), "")
    if word.isupper() and follows.isupper() and follows.casefold() not in FUNCTION:
        return UNSURE, end  # "EMILY WALSH" is a last name, "EMILY CALLED" is none
    surname = surname_after(after)
    return (NAME, end + surname) if surname else ("first_name", end)


def _named(word: str, after: str) -> bool:
    """Say whether a group's word may be somebody's name here: "Christian Vazquez"."""
    is_name = word.casefold() in NAME_WORDS and word[0].isupper()
    follows = next(words_after(after, 0, 1), "").casefold()
    one_of = PEOPLE | THINGS
    return is_name and bool(surname_after(after)) and follows not in one_of


def _of_the_same_people(words: list[Token], spans: list[Span]) -> list[Span]:
    """Add the last names, and doubtful first names, of people named in full elsewhere."""
    people = [span for span in spans if span.slot == NAME]
    firsts = {tokens(span.text)[0].folded: span for span in people}
    lasts = {tokens(span.text)[-1].folded: span for span in people}
    sure = [
        replace(span, slot="first_name")
        if span.slot == UNSURE and span.text.casefold() in firsts
        else span
        for span in spans
    ]
    for token in words:
        person = lasts.get(token.folded)
        covered = any(span.start <= token.start < span.end for span in sure)
        if person is None or covered or not token.text[0].isupper():
            continue
        spot = (token.start, token.end)
        sure.append(Span(*spot, "last_name", person.label, person.family, token.text))
    return sorted(sure, key=lambda span: span.start)


class _SpanLine(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: Annotated[str, Field(min_length=1, max_length=500)]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]
    slot: Annotated[str, Field(min_length=1, max_length=60)]
    label: Annotated[str, Field(min_length=1, max_length=60)]
    family: Annotated[str, Field(min_length=1, max_length=60)]
    text: Annotated[str, Field(min_length=1)]
    around: str = ""  # for people who read the file


_AROUND = 40  # our choice: characters on either side, so that a line still fits a screen


def write_spans(
    path: Path,
    spans_by_id: Mapping[str, tuple[Span, ...]],
    prompts: Mapping[str, str] | None = None,
) -> None:
    """Write the spans of each prompt as JSON lines.

    Args:
        path: A new file.
        spans_by_id: Spans of each prompt by its id.
        prompts: Text of each prompt by its id, to add the words around each span. None: without
            them.
    """
    lines = []
    for key, spans in spans_by_id.items():
        for span in spans:
            line = {"id": key, **asdict(span)}
            if prompts is not None:
                around = prompts[key][max(0, span.start - _AROUND) : span.end + _AROUND]
                line["around"] = around
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    write_new(path, b"".join(lines))


def read_spans(path: Path) -> dict[str, tuple[Span, ...]]:
    """Read the spans of each prompt by its id. Whether they fit their texts is seen when versions
    are made."""
    spans: dict[str, tuple[Span, ...]] = {}
    form = "create it with --find (docs/counterfactual.md)"
    for _, row in read_jsonl(path, _SpanLine, form):
        span = Span(row.start, row.end, row.slot, row.label, row.family, row.text)
        spans[row.id] = (*spans.get(row.id, ()), span)
    return spans
