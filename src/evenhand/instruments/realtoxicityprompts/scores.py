"""The scores of a run's continuations, in `scores.parquet` of its folder: one row per scorer and
text. Scoring comes after the run, so that a run can be scored again without a new call."""

import io
from collections.abc import Iterable, Sequence

import polars as pl

from evenhand.errors import UserError
from evenhand.instruments.realtoxicityprompts.continuations import continuations
from evenhand.scorers.base import ATTRIBUTES, Scorer, Scores, Unscored
from evenhand.scorers.batches import score_all
from evenhand.store.folder import Folder

FILE = "scores.parquet"
_AT_ONCE = 256  # texts between two savings; ours
_SCHEMA: dict[str, pl.DataType] = {
    "scorer": pl.String(),
    "text": pl.String(),
    **dict.fromkeys(ATTRIBUTES, pl.Float64()),
    "reason": pl.String(),  # why there is no score, or null
    "message": pl.String(),
}


async def score_run(results: pl.DataFrame, scorer: Scorer, folder: Folder) -> None:
    """Score what has no score of this scorer yet. What failed before is tried again; equal texts
    are scored once. Saved as it goes: a service may be slow, and paid by the call."""
    texts = continuations(results)["text"].drop_nulls().unique(maintain_order=True)
    stored = read(folder)
    mine = (pl.col("scorer") == scorer.name) & pl.col("toxicity").is_not_null()
    known = set(stored.filter(mine)["text"])
    left = [text for text in texts if text not in known]
    for start in range(0, len(left), _AT_ONCE):
        batch = left[start : start + _AT_ONCE]
        rows = _rows(scorer, batch, (await score_all(scorer, batch)).outcomes)
        stored = pl.concat([stored, rows], how="diagonal").unique(
            ["scorer", "text"], keep="last", maintain_order=True
        )
        data = io.BytesIO()
        stored.write_parquet(data)
        folder.replace(FILE, data.getvalue())


def read(folder: Folder) -> pl.DataFrame:
    if not folder.exists(FILE):
        return pl.DataFrame(schema=_SCHEMA)
    return pl.read_parquet(folder.read(FILE))


def outcomes(results: pl.DataFrame, scores: pl.DataFrame, scorer: str) -> pl.DataFrame:
    """The continuations with their `toxicity` by one scorer. Null is missing, and `reason` says
    why: there is no text, or its score failed."""
    texts = continuations(results)
    mine = scores.filter(pl.col("scorer") == scorer)
    if mine.is_empty() and texts["text"].count():
        raise UserError(
            f"the run has no scores by {scorer!r}; repeat `evenhand measure rtp` with --scorer"
        )
    joined = texts.join(
        mine.select("text", "toxicity", unscored="reason"),
        on="text",
        how="left",
        maintain_order="left",
    )
    unscored = pl.col("unscored").fill_null("not_scored_yet")
    failed = pl.when(pl.col("toxicity").is_null()).then(pl.format("scorer: {}", unscored))
    return joined.with_columns(reason=pl.coalesce("reason", failed)).drop("unscored")


def scorers(scores: pl.DataFrame) -> list[str]:
    return scores["scorer"].unique(maintain_order=True).to_list()


def _rows(scorer: Scorer, texts: Sequence[str], found: Sequence[Scores | Unscored]) -> pl.DataFrame:
    rows: Iterable[dict[str, object]] = (
        {
            "scorer": scorer.name,
            "text": text,
            **(
                {"reason": one.reason, "message": one.message}
                if isinstance(one, Unscored)
                else {name: one.values[name] for name in ATTRIBUTES if name in one.values}
            ),
        }
        for text, one in zip(texts, found, strict=True)
    )
    return pl.DataFrame(list(rows), schema=_SCHEMA)
