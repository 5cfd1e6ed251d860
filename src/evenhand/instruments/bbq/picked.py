"""Items that a run first answered with bias: a harder BBQ, as the MABRF paper's BBQ-Hard is (3.1).

Whoever is asked them again does better by chance alone, so the report says who picked them.
"""

from typing import Any, Literal

import polars as pl

from evenhand.errors import UserError
from evenhand.findings.report import models_of, not_run, require
from evenhand.findings.scored import Scored, outcome_batches
from evenhand.metrics.bbq import BIASED
from evenhand.store import RunReader

Answered = Literal["biased", "wrong"]


def picked(
    bbq: Scored, records: pl.DataFrame, run: RunReader, answered: Answered
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The records that the run's first answer was biased on (the stereotyped option, though it is
    not the right one) or wrong on, and who picked them."""
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
    names = outcomes.filter(fails)["item_id"]
    if names.is_empty():
        raise UserError(f"{run.path} gave no {answered} first answer: there is nothing to pick")
    item = pl.format("{}/{}", "category", "example_id")
    # What the others of a template would weigh is not known of items that were picked.
    kept = records.filter(item.is_in(names.implode())).drop("alike")
    record = run.record
    return kept, {
        "answered": answered,
        "of": record.source["items"],
        "without_answer": int(outcomes["answer"].null_count()),
        "method": record.method["name"],
        "model": models_of(record.cast),
        "sha256": record.source["sha256"],
    }
