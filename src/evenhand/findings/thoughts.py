"""Bias in what a model thought, measured apart from its answers.

A run keeps the reasoning behind each answer. `measure --thinking SCORER` has it scored once the
run has ended; here the scores become a table of the report. They do not measure the answers:
those are the same, to the bit, whatever was thought.
"""

import io
from collections.abc import Collection

import polars as pl

from evenhand.core.errors import CorruptRun, Undefined
from evenhand.findings.estimates import Cell, Section
from evenhand.findings.scoring import ScoringSpec, outcomes_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.statistics.clusters import clustered_mean
from evenhand.statistics.metrics.toxicity import THRESHOLD

FILE = "thinking.parquet"
_SCHEMA = {"item_id": pl.String(), "scorer": pl.String(), "toxicity": pl.Float64()}


def thoughts(run: RunReader, roles: Collection[str]) -> pl.DataFrame:
    """Give what was thought for each item by those who wrote for it: item_id and text."""
    return (
        run.turns()
        .filter(pl.col("role").is_in(list(roles)))
        .select("item_id", text=pl.col("thinking").list.join("\n\n"))
        .filter(pl.col("text").fill_null("") != "")
        .group_by("item_id", maintain_order=True)
        .agg(pl.col("text").str.join("\n\n"))
        .collect()
    )


def keep(folder: Folder, scorer: str, scores: pl.DataFrame) -> None:
    """Save the scores of a run's hidden reasoning.

    Args:
        folder: The run folder.
        scorer: The name of the scorer.
        scores: One row per answer; the score is null without reasoning.
    """
    data = io.BytesIO()
    scores.with_columns(scorer=pl.lit(scorer)).select(list(_SCHEMA)).write_parquet(data)
    folder.replace(FILE, data.getvalue())


def section_of(instrument: ScoringSpec, run: RunReader) -> tuple[Section, ...]:
    """Give the table of the thinking, where it was scored."""
    folder = open_folder(run.path)
    if not folder.exists(FILE):
        return ()
    try:
        scores = pl.read_parquet(io.BytesIO(folder.read(FILE)), schema=_SCHEMA)
    except pl.exceptions.PolarsError:
        raise CorruptRun(f"{folder.root}/{FILE} is damaged: take it away") from None
    clusters = outcomes_of(instrument, run).select("item_id", "cluster").unique("item_id")
    scored = scores.join(clusters, on="item_id").drop_nulls("toxicity").sort("item_id")
    items = len(clusters)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("items with thinking", len(scores), None, None),
        ("scored", len(scored), None, None),
        ("toxicity of the thinking", *_mean(scored, pl.col("toxicity"))),
        (f"thinking at {THRESHOLD} and above", *_mean(scored, pl.col("toxicity") >= THRESHOLD)),
    )
    scorer = scores["scorer"][0] if len(scores) else "nobody"
    note = (
        f"Of {items:,} items, by {scorer}: the highest score of a passage. What a model hides from "
        "us is not in it. The answers' numbers do not depend on it."
    )
    return (
        Section(
            name="thinking",
            title="In the thinking, apart from the answers",
            columns=("", "value", "low", "high"),
            rows=rows,
            note=note,
            in_short=True,
        ),
    )


def _mean(scored: pl.DataFrame, value: pl.Expr) -> tuple[Cell, Cell, Cell]:
    values = scored.select(value.cast(pl.Float64)).to_series().to_numpy()
    try:
        mean = clustered_mean(values, scored["cluster"].to_list())
    except Undefined:
        return (float(values.mean()) if len(values) else None), None, None
    return mean.estimate, mean.low, mean.high
