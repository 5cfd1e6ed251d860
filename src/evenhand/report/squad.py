"""SQuAD v2 in numbers that can be printed: each with its interval over articles."""

from typing import Any

import polars as pl

from evenhand.report.bbq import Estimate
from evenhand.statistics.clusters import clustered_mean

_WORDY = 20  # ours: the shortest gold answer is longer for 3 of the 11,873 questions

_ANSWERABLE = pl.col("answerable")
# What each estimate averages over the questions with an answer that could be read.
_MEANS: dict[str, pl.Expr] = {
    "exact": pl.col("exact"),
    "f1": pl.col("f1"),
    "exact_has_answer": pl.when(_ANSWERABLE).then(pl.col("exact")),
    "f1_has_answer": pl.when(_ANSWERABLE).then(pl.col("f1")),
    "no_answer": pl.when(~_ANSWERABLE).then(pl.col("exact")),
    "over_abstention": pl.when(_ANSWERABLE).then(pl.col("abstained")),
    "wordy": pl.col("words") > _WORDY,
}
LABELS = {
    "exact": "exact match",
    "f1": "F1",
    "exact_has_answer": "exact match where there is an answer (HasAns)",
    "f1_has_answer": "F1 where there is an answer (HasAns)",
    "no_answer": "none given where there is none (NoAns)",
    "over_abstention": "over-abstention: none given where there is one",
    "wordy": f"answers of more than {_WORDY} words",
}
PRIMARY = ("f1", "f1_has_answer", "no_answer")


def values(outcomes: pl.DataFrame, name: str) -> pl.DataFrame:
    """Columns key, cluster, value: the numbers whose mean is the estimate."""
    return (
        outcomes.filter(pl.col("state") == "scored")
        .select(key="item_id", cluster="article", value=_MEANS[name].cast(pl.Float64))
        .drop_nulls("value")
    )


def estimate(outcomes: pl.DataFrame, name: str) -> Estimate:
    rows = values(outcomes, name)
    return Estimate.of(name, lambda: clustered_mean(rows["value"], rows["cluster"]), within=(0, 1))


def scores(outcomes: pl.DataFrame) -> dict[str, Any]:
    """Everything the report says about one run's answers, apart from its cost."""
    return {
        "coverage": coverage(outcomes),
        "estimates": [estimate(outcomes, name) for name in _MEANS],
        "as_others_print_it": _official(outcomes),
        "notes": _notes(outcomes),
    }


def coverage(outcomes: pl.DataFrame) -> dict[str, Any]:
    lost = outcomes.filter(pl.col("state") != "scored")
    return {
        "n": len(outcomes),
        "scored": len(outcomes) - len(lost),
        "by_reason": dict(sorted(lost["state"].value_counts().iter_rows())),
        "coverage": 1 - len(lost) / len(outcomes),
    }


def _official(outcomes: pl.DataFrame) -> dict[str, float | int | None]:
    """The keys and the percent of evaluate-v2.0.py; and, stricter, missing answers as wrong."""
    known = outcomes.filter(pl.col("state") == "scored")
    found: dict[str, float | int | None] = {}
    parts = {
        "": known,
        "HasAns_": known.filter(_ANSWERABLE),
        "NoAns_": known.filter(~_ANSWERABLE),
    }
    for prefix, rows in parts.items():
        for name in ("exact", "f1"):
            found[f"{prefix}{name}"] = _percent(rows[name], len(rows))
        found[f"{prefix}total"] = len(rows)
    for name in ("exact", "f1"):
        found[f"{name}_missing_wrong"] = _percent(known[name], len(outcomes))
    return found


def _percent(part: pl.Series, whole: int) -> float | None:
    return 100 * float(part.sum()) / whole if whole else None


def _notes(outcomes: pl.DataFrame) -> list[str]:
    articles = outcomes["article"].n_unique()
    if articles >= 30:
        return []
    return [f"Only {articles} articles: what holds for them may not hold for others."]
