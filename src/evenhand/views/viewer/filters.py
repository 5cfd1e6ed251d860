"""The filters of the list: what a reader asks for, and what a run can be filtered by."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Condition, Event, Thread
from typing import Literal, get_args
from urllib.parse import urlencode

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader

Move = Literal["lost", "gained", "other", "same", "alone"]
MOVES = get_args(Move)
LONGEST = 200  # our choice, in characters of a filter: a word or a sentence to look for
_SEARCHED = ("item_id", "prompt", "text")
_WORDS = ("text", "draft", "ended", "changed", "score", "move")
_NAMES = (*_WORDS, "least", "most", "page")
TAG = "tag."
_PLACES = 18  # digits of a page or position: no item has more


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The filters that are set, and the page of what they leave. An empty one filters nothing."""

    text: str = ""  # words in the id, the prompt or the answer, in capitals or not
    draft: str = ""  # words in the first draft
    ended: str = ""  # "answered", "failed", why the answer is missing, or why the method stopped
    changed: str = ""  # "yes" or "no": by the method
    score: str = ""  # the name of the score that the two ends are about
    least: float | None = None
    most: float | None = None
    tags: tuple[tuple[str, str], ...] = ()
    move: str = ""  # one of MOVES, where two runs are compared
    page: int = 1

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> "ListQuery":
        """Read the address of a page. What it does not know is refused, not passed over: a filter
        that does nothing would show the wrong items."""
        pairs = list(query)
        names = [name for name, _ in pairs]
        unknown = [n for n in names if n not in _NAMES and not n.startswith(TAG)]
        if unknown:
            raise UserError(f"unknown filter {', '.join(unknown)[:LONGEST]}")
        if len(set(names)) < len(names):
            raise UserError("A filter appears twice in the address. Remove one.")
        filters = {name: value for name, value in pairs if value}
        if any(len(word) > LONGEST for pair in filters.items() for word in pair):
            raise UserError(f"a filter has at most {LONGEST} characters")
        tags = {name: filters.pop(name) for name in list(filters) if name.startswith(TAG)}
        page = whole(filters.pop("page", "1"))
        least, most = (_number(name, filters.pop(name, "")) for name in ("least", "most"))
        words = {name: filters.pop(name, "") for name in _WORDS}
        if page is None or page < 1 or words["changed"] not in ("", "yes", "no"):
            raise UserError("page is a number from 1, and changed is yes or no")
        if words["move"] not in ("", *MOVES):
            raise UserError(f"move is one of {', '.join(MOVES)}")
        if not words["score"] and (least, most) != (None, None):
            raise UserError("The address has a score range and no score. Choose the score first.")
        sorted_tags = tuple(sorted((name.removeprefix(TAG), tags[name]) for name in tags))
        return cls(
            text=words["text"],
            draft=words["draft"],
            ended=words["ended"],
            changed=words["changed"],
            score=words["score"],
            move=words["move"],
            least=least,
            most=most,
            tags=sorted_tags,
            page=page,
        )

    def at(self, page: int) -> "ListQuery":
        """The same filters, another page."""
        return replace(self, page=page)

    def address(self) -> str:
        """Write the filters as the end of an address; nothing where there are none."""
        pairs = [(name, getattr(self, name)) for name in (*_WORDS, "least", "most")]
        pairs += [(f"{TAG}{name}", value) for name, value in self.tags]
        pairs += [("page", self.page)] if self.page > 1 else []
        written = urlencode([(name, value) for name, value in pairs if value not in ("", None)])
        return f"?{written}" if written else ""

    def rows(self) -> pl.Expr | None:
        """Say which rows of the results are wanted, of whatever run; None is all of them."""
        conditions = [_has(name, value) for name, value in self.tags]
        if self.text:
            conditions.append(_any(_holds(name, self.text) for name in _SEARCHED))
        if self.draft:
            conditions.append(_holds("answer_before", self.draft))
        if self.ended in ("answered", "failed"):
            conditions.append(pl.col("status") == self.ended)
        elif self.ended:
            conditions.append(_any(pl.col(name) == self.ended for name in ("reason", "stopped")))
        if self.changed:
            conditions.append(pl.col("changed") == (self.changed == "yes"))
        if self.score:
            conditions.append(self._within())
        return pl.all_horizontal(conditions) if conditions else None

    def _within(self) -> pl.Expr:
        score = pl.element().struct
        selected = pl.when(score.field("name") == self.score).then(score.field("value"))
        value = pl.col("scores_after").list.eval(selected).list.max()
        low = -math.inf if self.least is None else self.least
        high = math.inf if self.most is None else self.most
        return value.is_between(low, high)


def whole(text: str) -> int | None:
    """Read a whole number from 0 on, or nothing."""
    plain = text.isascii() and text.isdecimal() and len(text) <= _PLACES
    return int(text) if plain else None


def _number(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise UserError(f"{name} is a number, not {text!r}")
    return number


def _holds(column: str, words: str) -> pl.Expr:
    return pl.col(column).str.contains(f"(?i){pl.escape_regex(words)}")


def _any(alike: Iterable[pl.Expr]) -> pl.Expr:
    return pl.any_horizontal(condition.fill_null(False) for condition in alike)


def _has(name: str, value: str) -> pl.Expr:
    tag = pl.element().struct
    alike = (tag.field("name") == name) & (tag.field("value") == value)
    return pl.col("tags").list.eval(alike).list.any()


_VALUES = 60  # our choice: a list that can be looked through; BBQ has fifty groups
_WAIT = 0.2  # our choice, in seconds: a page does not wait longer, it says what is known so far


class Facets:
    """The names and values that are known so far. A separate thread gathers them from the first
    page on, which does not wait for it where the run is large; it waits itself while a page is
    read."""

    def __init__(self, run: RunReader) -> None:
        self._run = run
        self._first = _grouped_by(run)
        self._tags: dict[str, set[str] | None] = {}  # None: too many values
        self._scores: set[str] = set()
        self._stopped: set[str] = set()
        self.problem = ""
        self._ended = Event()
        self._gathering = Thread(target=self._gather, daemon=True)
        self._reading = 0  # pages
        self._change = Condition()

    def ended(self, seconds: float = _WAIT) -> bool:
        """Wait so many seconds at most, and say whether all of the run has been looked at, or
        `problem` why it cannot be."""
        with self._change:
            if self._gathering.ident is None:
                self._gathering.start()
        return self._ended.wait(seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a page have the machine to itself."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._change:
            self._reading += more
            self._change.notify_all()

    @property
    def scores(self) -> list[str]:
        return sorted(self._scores.copy())[:_VALUES]

    @property
    def stopped(self) -> list[str]:
        """Why methods stopped."""
        return sorted(self._stopped.copy())[:_VALUES]

    @property
    def tags(self) -> dict[str, list[str]]:
        """Name and values of each tag, those that the instrument reports by first."""
        tags = self._tags.copy()
        names = sorted(tags, key=lambda name: (name not in self._first, name))
        return {name: sorted(values) for name in names[:_VALUES] if (values := tags[name])}

    def is_first(self, name: str) -> bool:
        """Whether the instrument reports by this tag; without an instrument every one counts."""
        return name in self._first or not self._first

    def _gather(self) -> None:
        try:
            for rows in self._run.result_batches(("tags", "scores_after", "stopped")):
                self._take(rows)
                with self._change:
                    self._change.wait_for(lambda: not self._reading)
        except (Exception, pl.exceptions.PanicException) as error:  # as in `app`
            self.problem = str(error) or type(error).__name__
        finally:
            self._ended.set()

    def _take(self, rows: pl.DataFrame) -> None:
        self._stopped |= _short(rows["stopped"])
        scores = rows["scores_after"].explode().drop_nulls()
        self._scores |= _short(scores.struct.field("name"))
        tags = rows["tags"].explode().drop_nulls().struct.unnest().drop_nulls()
        many = [name for name, values in self._tags.items() if values is None]
        short = (pl.col("name").str.len_chars() <= LONGEST - len(TAG)) & (
            pl.col("value").str.len_chars() <= LONGEST
        )
        pairs = tags.filter(short & ~pl.col("name").is_in(many)).unique()
        for (name,), values in pairs.group_by("name"):
            collected = self._tags.get(str(name)) or set()
            collected = collected | set(values["value"].head(_VALUES + 1))
            self._tags[str(name)] = collected if len(collected) <= _VALUES else None


def _short(words: pl.Series) -> set[str]:
    """The words that can be filtered by: what is longer is refused, so it is not offered."""
    return set(words.filter(words.str.len_chars() <= LONGEST).unique())


def _grouped_by(run: RunReader) -> set[str]:
    try:
        instrument = instrument_of(run)
    except UserError:  # nobody's, or one that is not installed here
        return set()
    return {group.column for group in instrument.groups} | {instrument.covered_by or ""} - {""}
