"""What a reader asks for: the filters of a list, as they stand in its address."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import urlencode

import polars as pl

from evenhand.core.errors import UserError

Move = Literal["lost", "gained", "other", "same", "alone"]
MOVES = get_args(Move)
LONGEST = 200  # our choice, in characters of a filter: a word or a sentence to look for
_SEARCHED = ("item_id", "prompt", "text")
_WORDS = ("text", "draft", "ended", "changed", "score", "move")
_NAMES = (*_WORDS, "least", "most", "page")
TAG = "tag."
_PLACES = 18  # digits of a number of a page or position: more is no item


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The filters that are set, and the page of what they leave. An empty one filters nothing."""

    text: str = ""  # words in the id, the prompt or the answer, in capitals or not
    draft: str = ""  # words in the first draft
    ended: str = ""  # "answered", "failed", why there is no answer, or why the method stopped
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
            raise UserError(f"there is no filter {', '.join(unknown)[:LONGEST]}")
        if len(set(names)) < len(names):
            raise UserError("a filter is given twice")
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
            raise UserError("choose the score that the numbers are about")
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
