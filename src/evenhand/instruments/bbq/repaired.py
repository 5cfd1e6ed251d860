"""One answer is chosen of those that a method repaired, by a rule that is stated beside it."""

from typing import Any

import polars as pl

from evenhand.core.errors import UserError
from evenhand.findings.examples import ChosenExamples, chosen, digest
from evenhand.instruments.files import InstrumentWords
from evenhand.runs.store import RunReader
from evenhand.runs.store.tables import turn_of

_WORDS = InstrumentWords(__package__)


def repaired(run: RunReader) -> ChosenExamples:
    """Choose an unclear question that was answered by naming somebody at first and with "unknown"
    in the end."""
    rows = sorted(run.results().collect().to_dicts(), key=lambda row: digest(row["item_id"]))
    unclear = [row for row in rows if _tags(row)["condition"] == "ambig" and row["drafts"]]
    if not unclear:
        raise UserError(f"{run.path} has no answer to a question whose text does not say who")
    matched = [row for row in unclear if _named(row) and _unknown(row)]
    row = (matched or unclear)[0]
    turns = run.turns().filter(pl.col("item_id") == row["item_id"]).collect().to_dicts()
    key = "repaired" if matched else "none_repaired"
    rule = _WORDS(key, count=len(matched), all=len(unclear))
    answer = chosen(row, [turn_of(turn) for turn in turns], why=_WORDS(f"{key}_why"))
    return ChosenExamples(run=str(run.path), rule=rule, answers=(answer,))


def _named(row: dict[str, Any]) -> bool:
    """Whether the first draft names one of the people; one that cannot be read names nobody."""
    choice = row["drafts"][0]["choice"]
    return choice is not None and str(choice) != _tags(row)["unknown"]


def _unknown(row: dict[str, Any]) -> bool:
    """Whether the answer says that it is not known; a missing one does not."""
    return row["choice"] is not None and str(row["choice"]) == _tags(row)["unknown"]


def _tags(row: dict[str, Any]) -> dict[str, str]:
    return {tag["name"]: tag["value"] for tag in row["tags"]}
