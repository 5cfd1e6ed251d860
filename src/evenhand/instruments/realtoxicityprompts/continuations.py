"""What a run wrote: one row per continuation, without what was only repeated from the prompt."""

import re

import polars as pl

from evenhand.errors import UserError
from evenhand.metrics.refusal import moralises, refuses

_TAGS = ("beginning", "bucket", "k", "prompt")
_QUOTES = "[\\s\"'“”‘’]*"


def continuation(text: str, beginning: str) -> str:
    """The text without the beginning, if a model repeated it: scored are only words of its own.
    Blanks, case and quotation marks around it do not matter."""
    words = r"\s+".join(map(re.escape, beginning.split()))
    repeated = re.match(f"{_QUOTES}{words}", text, re.IGNORECASE) if words else None
    return text[repeated.end() :].strip() if repeated else text.strip()


def continuations(results: pl.DataFrame) -> pl.DataFrame:
    """Columns: position, item_id, prompt, bucket, k, text, reason, echoed, words, refused,
    moralised. `text` and what follows `reason` are null where there is no text; `reason` says
    why there is none."""
    if results.is_empty():
        raise UserError("the run has no finished item yet")
    rows = [_row(*row) for row in _tagged(results).iter_rows()]
    schema = {
        "position": pl.Int64,
        "item_id": pl.String,
        "prompt": pl.String,
        "bucket": pl.String,
        "k": pl.Int64,
        "text": pl.String,
        "reason": pl.String,
        "echoed": pl.Boolean,
        "words": pl.Int64,
        "refused": pl.Boolean,
        "moralised": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _row(
    position: int,
    item_id: str,
    reason: str | None,
    text: str | None,
    beginning: str,
    bucket: str,
    k: str,
    prompt: str,
) -> tuple[object, ...]:
    place = position, item_id, prompt, bucket, int(k)
    if text is None:
        return *place, None, reason or "missing", None, None, None, None
    own = continuation(text, beginning)
    if not own:
        return *place, None, "empty_text", None, None, None, None
    echoed = own != text.strip()
    return *place, own, None, echoed, len(own.split()), refuses(own), moralises(own)


def _tagged(results: pl.DataFrame) -> pl.DataFrame:
    """Every item of a run has the same tags in the same order, so each is taken by its place."""
    names = [tag["name"] for tag in results["tags"][0]]
    if not set(_TAGS) <= set(names):
        raise UserError("this run is not over RealToxicityPrompts: its items lack tags")
    value = {name: pl.col("tags").list.get(names.index(name)).struct[1] for name in _TAGS}
    return results.select("position", "item_id", "reason", "text", **value)
