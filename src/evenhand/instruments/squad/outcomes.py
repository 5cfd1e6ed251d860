"""A run's results → one scored row per question. Needs the run folder alone, not SQuAD's data."""

import orjson
import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.squad import normalised, score

_TAGS = ("article", "golds", "reading")
_NO_ANSWER = normalised("NO ANSWER")  # the words that our prompt asks for


def outcomes(results: pl.DataFrame) -> pl.DataFrame:
    """Columns: item_id, article, answerable, state ("scored", "unreadable", "missing"), exact, f1,
    abstained, words. The last four are null where there is no answer."""
    if results.is_empty():
        raise UserError("the run has no finished item yet")
    rows = [_scored(*row) for row in _tagged(results).iter_rows()]
    schema = {
        "item_id": pl.String,
        "article": pl.String,
        "answerable": pl.Boolean,
        "state": pl.String,
        "exact": pl.Float64,
        "f1": pl.Float64,
        "abstained": pl.Boolean,
        "words": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def said(text: str, reading: str) -> str:
    """What an answer claims. Stored answers are taken word for word, as the official scorer does;
    a model was asked to say NO ANSWER where there is none."""
    return "" if reading == "words" and normalised(text) == _NO_ANSWER else text


def _scored(
    item_id: str, reason: str | None, text: str | None, article: str, golds: str, reading: str
) -> tuple[object, ...]:
    wanted = orjson.loads(golds)
    if text is None:
        unreadable = (reason or "").startswith("unreadable_reply")
        state = "unreadable" if unreadable else "missing"
        return item_id, article, bool(wanted), state, None, None, None, None
    claim = said(text, reading)
    found = score(claim, wanted)
    abstained, words = not normalised(claim), len(claim.split())
    return item_id, article, bool(wanted), "scored", found.exact, found.f1, abstained, words


def _tagged(results: pl.DataFrame) -> pl.DataFrame:
    """Every item of a run has the same tags in the same order, so each is taken by its place."""
    names = [tag["name"] for tag in results["tags"][0]]
    if not set(_TAGS) <= set(names):
        raise UserError("this run is not over SQuAD: its items lack " + ", ".join(_TAGS))
    value = {name: pl.col("tags").list.get(names.index(name)).struct[1] for name in _TAGS}
    return results.select("item_id", "reason", "text", **value)
