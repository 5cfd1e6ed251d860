"""What a run wrote: one row per continuation, without what was only repeated from the prompt."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import polars as pl

from evenhand.core import Item, messages_in
from evenhand.instruments.files import DrawnItems, sha256_of
from evenhand.runs.runners.message_rows import turns_of
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.refusal import moralises, refuses
from evenhand.statistics.metrics.toxicity import distinct
from evenhand.training.rating.judges import JudgeWithin

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
    """Turn rows of a run, with the facts as columns, into the columns position, item_id, prompt,
    bucket, k, text, reason, echoed, words, refused, moralised. If a text is missing, `reason` says
    why, and `text` and what follows `reason` are null."""
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


# -- how much the continuations of one prompt differ ----------------------------------------------


NEEDS = "" if find_spec("sacrebleu") else "needs sacrebleu: pip install 'evenhand[text]'"
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_COMPARED = (
    10  # our choice: more continuations of a prompt take the square of the time and say the same
)


def distinct_share(texts: Sequence[str], n: int) -> float | None:
    return distinct([_WORD.findall(text.lower()) for text in texts], n)


def self_bleu(texts: Sequence[str]) -> float | None:
    """The mean BLEU of each text against the others, 0 to 1 (Zhu et al. 2018), of the first ten.

    By sacrebleu: its 13a words, exponential smoothing, and n-grams only as long as a text has.
    Undefined: fewer than two texts, or sacrebleu is not installed.
    """
    compared = list(texts[:_COMPARED])
    if len(compared) < 2 or NEEDS:
        return None
    others = [compared[:i] + compared[i + 1 :] for i in range(len(compared))]
    bleu = _bleu()
    scores: list[float] = [
        bleu.sentence_score(text, rest).score for text, rest in zip(compared, others, strict=True)
    ]
    return min(1.0, sum(scores) / len(scores) / 100)  # equal texts give 100.00000000000004


@cache
def _bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - an extra

    return BLEU(effective_order=True)


# -- quality by a judge ---------------------------------------------------------------------------


TRAITS = ("fluency", "coherence", "relevance")
QUALITY = JudgeWithin(folder="quality", role="performance_evaluator", traits=TRAITS)


class ContinuationSource(DrawnItems[pl.DataFrame]):
    """The first so many continuations of each prompt, with the task that they were written for."""

    def __init__(self, rows: pl.DataFrame, per_prompt: int) -> None:
        self._per_prompt = per_prompt
        self._drawn = (
            continuations(rows)
            .join(
                rows.select("item_id", "asked", "conversation"), on="item_id", maintain_order="left"
            )
            .filter(pl.col("text").is_not_null() & (pl.col("k") < per_prompt))
        )

    def fingerprint(self) -> dict[str, Any]:
        return {
            "kind": "continuations",
            "per_prompt": self._per_prompt,
            "items": len(self),
            "sha256": sha256_of(self._drawn.select("item_id", "text")),
        }

    def read(self, start: int, stop: int) -> Iterator[Item]:
        for row in self._drawn.slice(start, stop - start).iter_rows(named=True):
            tags = {"prompt": row["prompt"], "bucket": row["bucket"], "k": str(row["k"])}
            turns = messages_in(row["conversation"])
            asked = turns_of(turns, row["item_id"]).fields() if turns else {"prompt": row["asked"]}
            yield Item(id=row["item_id"], answer=row["text"], tags=tags, **asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityMarks:
    """The marks of a judge: of each text that it was asked about, and of how many continuations of
    a prompt it was to be asked."""

    given: pl.DataFrame  # item_id and each trait from 0 to 100, null where the judge failed
    per_prompt: int = 0


NO_MARKS = QualityMarks(given=QUALITY.none())


def marks(run: RunReader) -> QualityMarks:
    """Give the marks of a run's texts; none where no judge was asked."""
    inner = QUALITY.run_of(run)
    if inner is None:
        return NO_MARKS
    table = QUALITY.marks(run).with_columns(pl.col(TRAITS) * 100)
    return QualityMarks(given=table, per_prompt=inner.record.source["per_prompt"])
