"""Pairs from written items: sentences with a blank, and the word of a stereotype to fill it with
(the subtler-bias items that paper 002 takes its five types from)."""

import csv
import gzip
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from evenhand.core import Message
from evenhand.core.errors import UserError
from evenhand.core.package_data import word_sets
from evenhand.training.debates.building import BuiltPairs, capped, finished, type_name
from evenhand.training.debates.near_duplicates import words
from evenhand.training.debates.pairs import FromItems, ItemsOfFile, PreferencePair, Split
from evenhand.training.debates.splits import draw, sides

_LISTS = word_sets(__package__, "english.toml")

Row = dict[str, str]
_OPTIONS = ("stereotype", "anti_stereotype", "unrelated")
_COLUMNS = ("bias_type", "context", *_OPTIONS)
_BLANK = "BLANK"
TYPES = {  # the word of the subtler-bias data: the word used here
    "ageism": "age",
    "beauty": "beauty",
    "beauty_profession": "profession",
    "instituition": "institution",
    "nationality": "nationality",
}
_PEOPLE = _LISTS["people"]
_PERSON = _LISTS["person"]


def read_items(file: Path) -> list[Row]:
    if not file.is_file():
        raise UserError(f"{file} is not a file; it should be a .csv or .csv.gz with {_COLUMNS}")
    try:
        with (
            gzip.open(file, "rt", encoding="utf-8", newline="")
            if file.suffix == ".gz"
            else (file.open(encoding="utf-8", newline="")) as lines
        ):
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, EOFError, csv.Error) as error:
        raise UserError(f"{file} cannot be read as CSV: {error}") from None
    missing = [name for name in _COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise UserError(f"{file} has no rows, or no column {', '.join(missing)}")
    return rows


def from_items(file: Path, split: Split) -> BuiltPairs:
    rows = read_items(file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    usable = [(row, topic) for row, topic in zip(rows, templates(rows), strict=True) if _fits(row)]
    if not usable:
        raise UserError(f"no row of {file} has one {_BLANK} in its context and all three options")
    pairs = capped(
        [_pair(row, topic, split.seed, file.name, sha256) for row, topic in usable], split
    )
    items = ItemsOfFile(
        read=len(rows),
        unusable=len(rows) - len(usable),
        chosen=dict(Counter(pair.role_chosen for pair in pairs)),
        sha256=sha256,
    )
    where = sides({(pair.topic, pair.bias_type) for pair in pairs}, split.test_share, split.seed)
    return finished(pairs, where, split, FromItems(items=items))


def templates(rows: Sequence[Row]) -> list[str]:
    """What a row's context was made from: the blank, and whatever some row offers as an option, is
    "_"; who it is about is "one" or "someone". Give it all rows of a file: the options of one row
    are the fillings of another."""
    phrases: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in rows:
        for name in _OPTIONS:
            if phrase := tuple(words(row[name] or "")):
                phrases[phrase[0]].add(phrase)
    return [_template(row["context"] or "", phrases) for row in rows]


def _template(context: str, phrases: dict[str, set[tuple[str, ...]]]) -> str:
    tokens = words(context)
    parts: list[str] = []
    at = 0
    while at < len(tokens):
        matching = [
            phrase
            for phrase in phrases.get(tokens[at], ())
            if phrase == tuple(tokens[at : at + len(phrase)])
        ]
        parts.append("_" if matching else _plain(tokens[at]))
        at += max(map(len, matching), default=1)
    return " ".join(parts)


def _plain(word: str) -> str:
    if word == _BLANK.lower() or word.isdigit():
        return "_"
    return "someone" if word in _PERSON else "one" if word in _PEOPLE else word


def _fits(row: Row) -> bool:
    once = len(re.findall(rf"\b{_BLANK}\b", row["context"] or "")) == 1
    options = {" ".join(words(row[name] or "")) for name in _OPTIONS}
    return once and len(options) == len(_OPTIONS) and "" not in options and bool(row["bias_type"])


def _pair(row: Row, topic: str, seed: int, run: str, sha256: str) -> PreferencePair:
    """Half of the time the opposite of the stereotype, half of the time what has nothing to do
    with it: a model is to let go of the stereotype, not to turn it round."""
    opposite = draw(seed, "item", row["context"], row["stereotype"]) < 0.5
    chosen = "anti_stereotype" if opposite else "unrelated"
    sentence = re.sub(rf"\b{_BLANK}\b", "____", row["context"]).strip()
    kind = row["bias_type"].strip().lower()
    return PreferencePair(
        prompt=(Message("user", f"Fill in the blank and give the whole sentence: {sentence}"),),
        chosen=_filled(row, chosen),
        rejected=_filled(row, "stereotype"),
        score_chosen=None,
        score_rejected=None,
        topic=topic,
        topic_rejected=topic,
        bias_type=type_name(TYPES.get(kind, kind)),
        role_chosen=chosen,
        role_rejected="stereotype",
        round_chosen=None,
        round_rejected=None,
        referee="",
        strategy="same_topic",
        source="items",
        prompts={run: sha256},
        run=run,
    )


def _filled(row: Row, option: str) -> str:
    return re.sub(rf"\b{_BLANK}\b", lambda _: row[option].strip(), row["context"]).strip()
