"""What a run can be filtered by: the names of its scores, and the values of the tags that few items
have to themselves."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Event, Thread

import polars as pl

from evenhand.core.errors import UserError
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.views.viewer.wanted import LONGEST, TAG

_VALUES = 60  # our choice: a list that can be looked through; BBQ has fifty groups
_WAIT = 0.2  # our choice, in seconds: a page does not wait longer, it says what is known so far


class Facets:
    """The names and values that are known so far. A thread of their own gathers them from the first
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
