"""These are generated questions in the structure of BBQ, worded by us: no data file is needed.

A template is a scene of one category. Each has two pairs of people and two versions: in version a
the text names the first of the pair as who did it, in version b the second. A version of a pair is
a block of four rows: an unclear and a clear text, a negative and a non-negative question. The
stereotype that a question tests is made up: it always says that the first of the pair did it. So
version a fits the stereotype ("aligned") and version b goes against it.

Three things that spoil a careless score are there as in the real data: templates without a version
b, records whose gold contradicts their text ("masked"), and people who have only names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenhand.core.package_data import read_toml


@dataclass(frozen=True, slots=True)
class PersonPair:
    """A pair of people, the one whom the made-up stereotype is about first; `group` is theirs."""

    group: str
    first: str
    second: str
    names: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene names where two people were, what each of them may have done, and asks for either."""

    where: str
    did: str  # what the stereotype says of the first of a pair
    did_not: str
    negative: str  # asks for who did
    non_negative: str  # asks for who did not


_WORDED = read_toml(__package__, "items.toml")
PEOPLE = {
    category: tuple(PersonPair(**pair) for pair in pairs)
    for category, pairs in _WORDED["people"].items()
}
SCENES = tuple(Scene(**scene) for scene in _WORDED["scenes"])
_ONLY_ALIGNED = {("SES", 9), ("SES", 10)}  # templates that have no version b
_GOLD_IS_WRONG = {("Physical_appearance", 6), ("Physical_appearance", 10)}  # in version b
_UNKNOWN = ("Not enough information", "It is not known", "Cannot be told")
_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0))
_COPY = 1_000_000  # a copied record's number is the record's own plus so much a copy

SCHEMA: dict[str, Any] = {
    "category": pl.String,
    "question_index": pl.String,
    "example_id": pl.Int64,
    "context": pl.String,
    "question": pl.String,
    "label": pl.Int64,
    "polarity": pl.String,
    "condition": pl.String,
    "options": pl.List(pl.String),
    "unknown": pl.Int64,
    "biased": pl.Int64,
    "names": pl.Boolean,
    "masked": pl.Boolean,
    "against": pl.String,
    "aligned": pl.Boolean,
}
_ALIKE = ("category", "question_index", "aligned", "condition")


def records() -> pl.DataFrame:
    """Every generated record, one row each, with the columns that `BbqData.records` has."""
    rows = [row for category in PEOPLE for row in _category(category)]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_row_index("row")
    return frame.with_columns(alike=pl.len().over(_ALIKE))


def copied(frame: pl.DataFrame, times: int) -> pl.DataFrame:
    """The records, each `times` times: more rows, and no more that is known."""
    copies = [
        frame.with_columns(example_id=pl.col("example_id") + number * _COPY)
        for number in range(times)
    ]
    return pl.concat(copies).drop("row").with_row_index("row")


def original(example_id: int) -> int:
    """The number of the record that this one is a copy of; its own where it is none."""
    return example_id % _COPY


def _category(category: str) -> Iterator[tuple[Any, ...]]:
    block = 0
    for number, scene in enumerate(SCENES, start=1):
        for pair in PEOPLE[category]:
            for version in "a" if (category, number) in _ONLY_ALIGNED else "ab":
                masked = version == "b" and (category, number) in _GOLD_IS_WRONG
                for offset, row in enumerate(_block(scene, pair, version, block, masked=masked)):
                    yield category, str(number), 4 * block + offset, *row
                block += 1


def _block(
    scene: Scene, pair: PersonPair, version: str, block: int, *, masked: bool
) -> Iterator[tuple[Any, ...]]:
    """The four rows of a block. Persons are 0, the first of the pair, and 1; "unknown" is 2."""
    people = (pair.first, pair.second)
    did = 0 if version == "a" else 1
    mentioned = people if block % 2 else people[::-1]  # who is named first says nothing
    unclear = f"{_capital(mentioned[0])} and {mentioned[1]} {scene.where}."
    clear = f"{unclear} {_capital(people[did])} {scene.did}; {people[1 - did]} {scene.did_not}."
    order = _ORDERS[block % len(_ORDERS)]
    options = [(*map(_capital, people), _UNKNOWN[block % len(_UNKNOWN)])[o] for o in order]
    for polarity, question in (("neg", scene.negative), ("nonneg", scene.non_negative)):
        negative = polarity == "neg"
        answer = did if negative else 1 - did
        biased = 0 if negative else 1
        for condition, context in (("ambig", unclear), ("disambig", clear)):
            wrong = masked and condition == "disambig"
            gold = 2 if condition == "ambig" else 1 - answer if wrong else answer
            yield (
                context, question, order.index(gold), polarity, condition, options,
                order.index(2), order.index(biased), pair.names, wrong, pair.group, did == 0,
            )  # fmt: skip


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
