"""The critiques of a finished run, to be lent to other items: the control "other"."""

from pathlib import Path
from typing import Any

import polars as pl

from evenhand.agents import strict_json
from evenhand.errors import UnreadableReply, UserError
from evenhand.models.borrowed import BorrowedReplies
from evenhand.store import RunReader

_CRITICS = {"bias_evaluator": "reason", "judge": "bias_reason"}  # where each says what is wrong
_REVISERS = ("generator", "rephraser")  # who acts on it


def critiques_of(run: str | Path) -> BorrowedReplies:
    """What the judges of a StarDTox or MABRF run said where a draft was sent back.

    >>> cast = Cast(model, {"other_critique": critiques_of("runs/first")})

    A verdict that no revision followed is left out: the draft was accepted with it, or kept in
    spite of it.
    """
    by_reviser = pl.col("role").is_in(_REVISERS)
    last_revision = pl.col("index").filter(by_reviser).max().over("position")
    acted_on = pl.col("role").is_in(list(_CRITICS)) & (pl.col("index") < last_revision)
    turns = RunReader(run).turns().filter(acted_on).select("item_id", "role", "texts").collect()
    said = [(row["item_id"], _critique(row)) for row in turns.iter_rows(named=True)]
    critiques = [(item_id, words) for item_id, words in said if words]
    if not critiques:
        raise UserError(
            f"{run} has no critique that a revision followed: name a run of stardtox or mabrf "
            "with its own critiques, in which drafts were sent back"
        )
    return BorrowedReplies(critiques)


def _critique(turn: dict[str, Any]) -> str:
    """Empty where the reply could not be read: it was asked for once more."""
    try:
        said = strict_json.parse(turn["texts"][0])[_CRITICS[turn["role"]]]
    except (UnreadableReply, LookupError, TypeError):
        return ""
    return said if isinstance(said, str) else ""
