"""The answers of a run with what is read from each, and the excess of each square."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenhand.findings.scoring import REFUSED, UNREADABLE
from evenhand.instruments._contract import SCORED, why_lost
from evenhand.instruments.swap.contrasts import OUTCOMES, SwapOutcome, with_other
from evenhand.instruments.swap.squares import excesses
from evenhand.statistics.metrics.readings import WORD, read


def main_of(source: Mapping[str, Any]) -> str:
    """Name the outcome that the excess is of: the decision, else the number, else the words."""
    sampling = source["sampling"]
    return "decision" if sampling["decision"] else "number" if sampling["number"] else "bag"


def signed_by(source: Mapping[str, Any]) -> SwapOutcome | None:
    """Give the main outcome, where it has a direction; words have none."""
    name = {"decision": "chosen", "number": "number"}.get(main_of(source))
    return next((outcome for outcome in OUTCOMES if outcome.name == name), None)


def answers_of(
    rows: pl.DataFrame, source: Mapping[str, Any], counted: str | None = None
) -> pl.DataFrame:
    """Read the answers of rows that have their facts. A blank answer is none.

    Args:
        rows: the answers with their facts.
        source: what was asked, as the run's record has it.
        counted: the decision that is counted; without it, the one that `wanted` gives.

    Returns:
        The rows with what is read from each, the excess of each square (`excess`), and the signed
        difference from the answer about the paired label (`signed`).
    """
    sampling, main = source["sampling"], main_of(source)
    written = pl.col("text").str.strip_chars() != ""
    rows = rows.with_columns(text=pl.when(written).then(pl.col("text")), blank=~written)
    answers = read(rows, sampling["decision"], sampling["number"]).with_columns(
        asked_words=pl.col("prompt").str.to_lowercase().str.extract_all(WORD)
    )
    chosen = wanted(source, answers["decision"]) if counted is None else counted
    decision = named(source)
    answers = answers.with_columns(
        (pl.lit(None, pl.Boolean) if which is None else pl.col("decision") == which).alias(name)
        for name, which in (("chosen", chosen), ("named", decision))
    )
    unread = pl.when(pl.col("refused")).then(pl.lit(REFUSED)).otherwise(pl.lit(UNREADABLE))
    state = (
        pl.when("blank").then(pl.lit(UNREADABLE))
        .when(pl.col("text").is_null()).then(why_lost())
        .when(pl.col(main).is_null()).then(unread)
        .otherwise(pl.lit(SCORED))
    )  # fmt: skip
    answers = answers.with_columns(state=state)
    squares = excesses(answers)
    answers = answers.join(squares, on="item_id", how="left", maintain_order="left")
    # A row without a score has no excess of anything: it counts as missing, once.
    apart = pl.col("^(excess|beside)\\..*$")
    answers = answers.with_columns(pl.when(pl.col("state") == SCORED).then(apart))
    answers = answers.with_columns(excess=f"excess.{main}", beside=f"beside.{main}")
    outcome = signed_by(source)
    if outcome is None:
        return answers.with_columns(signed=pl.lit(None, pl.Float64))
    value, *_ = outcome.differences(outcome.name, f"{outcome.name}:o")
    signed = with_other(answers, [outcome.name]).select("item_id", value.alias("signed"))
    return answers.join(signed, on="item_id", how="left", maintain_order="left")


def wanted(source: Mapping[str, Any], decisions: pl.Series) -> str | None:
    """The decision that is counted: the one that was named, if any answer names it, so that a
    slip of the pen is not counted as a decision that nobody gets; else the most frequent."""
    decision = named(source)
    if decision is None:
        return _most_frequent(decisions)
    return decision if (decisions == decision).any() else None


def named(source: Mapping[str, Any]) -> str | None:
    """The decision that the user named, whether any answer does or not."""
    chosen = source.get("chosen")
    return None if chosen is None else str(chosen).strip().lower()


def _most_frequent(decisions: pl.Series) -> str | None:
    """The decision that is given most often, the first by name of several."""
    counts = decisions.drop_nulls().value_counts().sort(["count", "decision"],
                                                         descending=[True, False])  # fmt: skip
    return None if counts.is_empty() else str(counts["decision"][0])


def chosen_of(answers: pl.DataFrame) -> str | None:
    """The decision that is counted in the contrasts."""
    return _most_frequent(answers.filter("chosen")["decision"])
