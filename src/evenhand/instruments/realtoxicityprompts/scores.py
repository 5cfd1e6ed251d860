"""The scores of a run's continuations, in `scores.parquet` of its folder: one row per scorer and
text. Scoring comes after the run, so that a run can be scored again without a new call.

The file carries a checksum of its rows: no ledger names it, since it grows after the run."""

import hashlib
import io
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.core.errors import CorruptRun, UserError
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.scorers.base import ATTRIBUTES, Scorer, Scores, Unscored, score_all

FILE = "scores.parquet"
_WHOSE = "scoring.json"  # names the scorer that a report goes by
_CHECKSUM = b"evenhand_sha256"
_AT_ONCE = 256  # our choice: texts between two savings
_SCHEMA: dict[str, pl.DataType] = {
    "scorer": pl.String(),
    "text": pl.String(),
    **dict.fromkeys(ATTRIBUTES, pl.Float64()),
    "reason": pl.String(),  # why the score is missing, or null
    "message": pl.String(),
}


async def score_run(texts: pl.Series, scorer: Scorer, folder: Folder) -> None:
    """Score every text that has no score by this scorer yet.

    Failed texts are tried again, and equal texts are scored once. Scores are saved batch by batch:
    a service may be slow, and paid per call. Reports then use this scorer.

    Args:
        texts: Continuations of the run; null where there is none.
        scorer: Scorer to ask.
        folder: Run folder that keeps the scores.
    """
    stored = read(folder)
    mine = (pl.col("scorer") == scorer.name) & pl.col("toxicity").is_not_null()
    scored = set(stored.filter(mine)["text"])
    left = [text for text in texts.drop_nulls().unique(maintain_order=True) if text not in scored]
    for start in range(0, len(left), _AT_ONCE):
        batch = left[start : start + _AT_ONCE]
        rows = _rows(scorer, batch, (await score_all(scorer, batch)).outcomes)
        stored = pl.concat([stored, rows], how="diagonal").unique(
            ["scorer", "text"], keep="last", maintain_order=True
        )
        folder.replace(FILE, _packed(stored))
    folder.replace(_WHOSE, orjson.dumps({"scorer": scorer.name}))


def read(folder: Folder) -> pl.DataFrame:
    if not folder.exists(FILE):
        return pl.DataFrame(schema=_SCHEMA)
    data = folder.read(FILE)
    try:
        table = pq.read_table(pa.BufferReader(data))
        columns = table.to_pydict()
        written = (table.schema.metadata or {}).get(_CHECKSUM)  # older files have none
        if written not in (None, _checksum(columns)) or [*columns] != [*_SCHEMA]:
            raise ValueError("another checksum")
        return pl.DataFrame(columns, schema=_SCHEMA)
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError, TypeError):
        raise CorruptRun(
            f"{folder.root}/{FILE} is damaged. Restore it from a copy. Or delete it and "
            "repeat `evenhand measure rtp` with the same options, which scores the texts "
            "again"
        ) from None


def _packed(scores: pl.DataFrame) -> bytes:
    table = scores.to_arrow(compat_level=pl.CompatLevel.oldest())
    data = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata({_CHECKSUM: _checksum(table.to_pydict())}),
        data,
        compression="zstd",
    )
    return data.getvalue()


def _checksum(columns: dict[str, list[Any]]) -> bytes:
    """Of the rows and not of the file: it can then stand in the file itself, and a kill between two
    files cannot part them."""
    return hashlib.sha256(orjson.dumps(columns)).hexdigest().encode()


def of_scorer(run: RunReader, scorer: str) -> pl.DataFrame:
    """The scores that one scorer gave to a run's texts, as `with_scores` takes them."""
    return read(open_folder(run.path)).filter(pl.col("scorer") == scorer)


def with_scores(texts: pl.DataFrame, scores: pl.DataFrame, scorer: str) -> pl.DataFrame:
    """Join continuations with their `toxicity` by one scorer.

    Args:
        texts: Continuations, with a `reason` where the text is missing.
        scores: Scores by this scorer: text, toxicity and reason.
        scorer: Name of the scorer for error messages.

    Returns:
        The continuations with `toxicity`. Where it is null, `reason` says why: the text is missing,
        or its score failed.

    Raises:
        UserError: There are texts but no scores at all.
    """
    if scores.is_empty() and texts["text"].count():
        raise UserError(
            f"the run has no scores by {scorer!r}. Repeat `evenhand measure rtp` with --scorer"
        )
    joined = texts.join(
        scores.select("text", "toxicity", unscored="reason"),
        on="text",
        how="left",
        maintain_order="left",
    )
    unscored = pl.col("unscored").fill_null("not_scored_yet")
    failed = pl.when(pl.col("toxicity").is_null()).then(pl.format("scorer: {}", unscored))
    return joined.with_columns(reason=pl.coalesce("reason", failed)).drop("unscored")


def scorer_of(run: RunReader) -> str:
    """The scorer that a report of this run goes by: the one that scored it last."""
    folder = open_folder(run.path)
    current, scored = _named(folder), scorers(read(folder))
    if current is None and not scored:
        raise UserError(
            f"{run.path} has no scores yet. Repeat `evenhand measure rtp --out {run.path}` "
            "with the same options. Completed continuations are not requested again"
        )
    return current if current is not None else scored[-1]


def common_scorer(before: RunReader, after: RunReader) -> str:
    """The scorer of the second run's report, if the first was scored by it too; else the last that
    both have."""
    ours, theirs = (scorers(read(open_folder(run.path))) for run in (before, after))
    both = [name for name in theirs if name in ours]
    if not both:
        raise UserError(
            f"the runs were scored by different scorers: {', '.join(ours) or 'none'} and "
            f"{', '.join(theirs) or 'none'}. Repeat `evenhand measure rtp` with the same "
            "--scorer"
        )
    current = _named(open_folder(after.path))
    return current if current in both else both[-1]


def steered_by(run: RunReader, scorer: str) -> bool:
    """Whether this very scorer was asked while the texts were written."""
    return not run.turns().filter(pl.col("model") == scorer).head(1).collect().is_empty()


def scorers(scores: pl.DataFrame) -> list[str]:
    return scores["scorer"].unique(maintain_order=True).to_list()


def _named(folder: Folder) -> str | None:
    """The scorer that a folder names; older folders name it in their report."""
    for file in (_WHOSE, "report.json"):
        try:
            content: Any = orjson.loads(folder.read(file)) if folder.exists(file) else {}
        except orjson.JSONDecodeError:
            raise CorruptRun(f"{folder.root}/{file} is damaged. Delete it") from None
        if isinstance(content, dict) and isinstance(content.get("scorer"), str):
            return str(content["scorer"])
    return None


def _rows(
    scorer: Scorer, texts: Sequence[str], outcomes: Sequence[Scores | Unscored]
) -> pl.DataFrame:
    rows: Iterable[dict[str, object]] = (
        {
            "scorer": scorer.name,
            "text": text,
            **(
                {"reason": outcome.reason, "message": outcome.message}
                if isinstance(outcome, Unscored)
                else {name: outcome.values[name] for name in ATTRIBUTES if name in outcome.values}
            ),
        }
        for text, outcome in zip(texts, outcomes, strict=True)
    )
    return pl.DataFrame(list(rows), schema=_SCHEMA)
