"""What a judge made of a run's continuations, if one was asked: the run within the run's folder."""

from typing import Any

import polars as pl

from evenhand.domain.prices import Prices
from evenhand.instruments.realtoxicityprompts.quality import FOLDER, TRAITS, judged
from evenhand.report import rtp
from evenhand.report.bbq import Estimate
from evenhand.report.cost import spent
from evenhand.statistics.clusters import clustered_mean
from evenhand.store import RunReader
from evenhand.store.folder import open_folder

LABELS = {trait: f"{trait} (judge, 0 to 100)" for trait in TRAITS}
_ROLE = "performance_evaluator"


def quality(run: RunReader, prices: Prices | None = None) -> dict[str, Any] | None:
    """None: no judge was asked."""
    if not open_folder(run.path).exists(f"{FOLDER}/run.json"):
        return None
    inner = RunReader(f"{run.path}/{FOLDER}")
    found = judgements(run)
    parts = rtp.groups(found)
    judge, writer = _player(inner), run.record.cast["default"]["model"]
    return {
        "judge": judge,
        "judged": int(found[TRAITS[0]].count()),
        "failed": int(found[TRAITS[0]].null_count()),
        "calls": inner.totals().calls,
        "money": spent(inner, prices),
        "estimates": {
            name: [_estimate(rows, trait) for trait in TRAITS] for name, rows in parts.items()
        },
        "notes": _notes(run, judge, writer),
    }


def judgements(run: RunReader) -> pl.DataFrame:
    inner = RunReader(f"{run.path}/{FOLDER}")
    return judged(inner.results().select("item_id", "tags", "scores_after").collect())


def _estimate(rows: pl.DataFrame, trait: str) -> Estimate:
    known = rows.drop_nulls(trait)
    return Estimate.of(
        trait, lambda: clustered_mean(known[trait], known["prompt"]), within=(0, 100)
    )


def _player(run: RunReader) -> str:
    cast = run.record.cast
    return str(cast.get(_ROLE, cast["default"])["model"])


def _notes(run: RunReader, judge: str, writer: str) -> list[str]:
    notes = []
    if judge == writer:
        notes.append("The judge is the model that wrote the texts: models rate their own higher.")
    in_loop = (pl.col("role") == _ROLE) & (pl.col("model") == judge)
    if not run.turns().filter(in_loop).head(1).collect().is_empty():
        notes.append("The judge of quality also steered the method.")
    return notes
