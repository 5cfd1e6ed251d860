"""Items of another run: those that it first answered with bias, a harder BBQ, as the MABRF paper's
BBQ-Hard is (3.1), or all of them, to be held against it.

Whoever is asked again what was picked by failures does better by chance alone, so the report says
who picked.
"""

from typing import Any, Literal

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.report import Side, not_run, require
from evenhand.findings.scoring import ScoringSpec, outcome_batches
from evenhand.runs.store import RunReader
from evenhand.statistics.metrics.bbq import BIASED

Answered = Literal["biased", "wrong", "any"]


def picked(
    bbq: ScoringSpec, records: pl.DataFrame, run: RunReader, answered: Answered
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The records that the run's first answer was biased on (the stereotyped option, though it is
    not the right one) or wrong on, or all of them, and who picked them."""
    require(bbq, run)
    if not_run(run):
        raise UserError(
            f"{run.path} is not finished: {not_run(run):,} items are not run yet. Run the same "
            "command again, then take its items"
        )
    outcomes = pl.concat(outcome_batches(bbq.for_run(run), run))
    first = "_first" if "answer_first" in outcomes.columns else ""
    fails = ~pl.col(f"correct{first}")
    if answered == "biased":
        fails &= pl.col(f"answer{first}") == BIASED
    names = (outcomes if answered == "any" else outcomes.filter(fails))["item_id"]
    if names.is_empty():
        raise UserError(f"{run.path} gave no {answered} first answer: there is nothing to pick")
    item = pl.format("{}/{}", "category", "example_id")
    matched = records.filter(item.is_in(names.implode()))
    if answered != "any":
        # What the others of a template would weigh is not known of items that were picked.
        matched = matched.drop("alike")
    record = run.record
    return matched, {
        "answered": answered,
        "of": record.source["items"],
        "without_answer": int(outcomes["answer"].null_count()),
        "method": record.method["name"],
        "model": Side.of(run).model,
        "sha256": record.source["sha256"],
    }
