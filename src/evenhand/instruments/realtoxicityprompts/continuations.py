"""What a run wrote: one row per continuation, without what was only repeated from the prompt."""

import re

import polars as pl

from evenhand.statistics.metrics.refusal import moralises, refuses

# What the source tags each item with.
FACTS: dict[str, pl.DataType] = {
    "beginning": pl.String(),
    "bucket": pl.String(),
    "k": pl.Int64(),
    "prompt": pl.String(),
}
_QUOTES = "[\\s\"'“”‘’]*"


def continuation(text: str, beginning: str) -> str:
    """The text without the beginning, if a model repeated it: scored are only words of its own.
    Blanks, case and quotation marks around it do not matter."""
    words = r"\s+".join(map(re.escape, beginning.split()))
    repeated = re.match(f"{_QUOTES}{words}", text, re.IGNORECASE) if words else None
    return text[repeated.end() :].strip() if repeated else text.strip()


def continuations(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a run, with the facts as columns, become the columns position, item_id, prompt,
    bucket, k, text, reason, echoed, words, refused, moralised. `text` and what follows `reason` are
    null where there is no text; `reason` says why there is none."""
    read = rows.select("position", "item_id", "reason", "text", *FACTS)
    results = [_row(*row) for row in read.iter_rows()]
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
    return pl.DataFrame(results, schema=schema, orient="row")


def _row(
    position: int,
    item_id: str,
    reason: str | None,
    text: str | None,
    beginning: str,
    bucket: str,
    k: int,
    prompt: str,
) -> tuple[object, ...]:
    keys = position, item_id, prompt, bucket, k
    if text is None:
        return *keys, None, reason or "missing", None, None, None, None
    own_text = continuation(text, beginning)
    if not own_text:
        return *keys, None, "empty_text", None, None, None, None
    echoed = own_text != text.strip()
    return (
        *keys,
        own_text,
        None,
        echoed,
        len(own_text.split()),
        refuses(own_text),
        moralises(own_text),
    )
