"""A finished run can play roles: as a whole cast, where every call is answered from its recorded
turns, or as the placebo critic, who takes its critiques (the control `critique=other`)."""

from functools import partial
from pathlib import Path

import orjson
import polars as pl

from evenhand.agents import Cast, strict_json
from evenhand.agents.agent import RepairRoles, repairs_of
from evenhand.core.errors import UnreadableReply, UserError
from evenhand.models.base import ChatModel
from evenhand.models.replay import BorrowedReplies, ReplayModel
from evenhand.runs.runners.plan import RunPlan
from evenhand.runs.store import EqualCalls, RunReader, RunTape


def replay_of(run: str | Path) -> Cast:
    """Build the cast of a recorded run, which answers every call from that run's turns.

    >>> evenhand.mitigate(items, model=replay_of("runs/first"), out="runs/again")
    """
    reader = RunReader(run)
    tape = RunTape(reader)
    played = {role: ReplayModel(tape, player) for role, player in reader.record.cast.items()}
    system = {role: s["system"] for role, s in reader.record.cast.items() if "system" in s}
    return Cast(played.pop("default"), played, system)


def reusing(cast: Cast, plan: RunPlan) -> Cast:
    """Answer from the runs that a plan reuses where they have an equal call of the same model;
    other calls are sent.

    Args:
        cast: The models of the plan, as they are asked.
        plan: The plan, whose runs must be of the same items and seed.

    Returns:
        The cast.

    Raises:
        UserError: If a run was made on other items or with another seed.
    """
    if not plan.reuse:
        return cast
    planned = orjson.loads(orjson.dumps({"seed": plan.seed, "source": plan.source.fingerprint()}))
    for run in map(RunReader, plan.reuse):
        other = [name for name, value in planned.items() if getattr(run.record, name) != value]
        if other:
            raise UserError(
                f"{run.path} cannot be reused: it has another {' and '.join(other)}, so its calls "
                "are not those of this run. Leave out --reuse, or repeat its options."
            )
        cast = cast.through(partial(_reusing, run=run))
    return cast


def _reusing(model: ChatModel, run: RunReader) -> ChatModel:
    return ReplayModel.before(model, EqualCalls(run, model.describe()))


def critiques_of(run: str | Path) -> BorrowedReplies:
    """Build a placebo critic from what the judges of a run, such as one of StarDTox, said where a
    draft was sent back.

    >>> cast = Cast(model, {"other_critique": critiques_of("runs/first")})

    A verdict that no revision followed is left out: the draft was accepted with it, or kept in
    spite of it.
    """
    reader = RunReader(run)
    repairs = repairs_of(reader.record.method["name"])
    critiques = _critiques(reader, repairs) if repairs else []
    if not critiques:
        raise UserError(
            f"{run} has no critique that led to a revision. Use a run of stardtox or mabrf with "
            "its own critiques, in which drafts were revised."
        )
    return BorrowedReplies(critiques)


def _critiques(run: RunReader, repairs: RepairRoles) -> list[tuple[str, str]]:
    """Give each critique with the id of the item that it was made for."""
    by_reviser = pl.col("role") == repairs.reviser
    last_revision = pl.col("index").filter(by_reviser).max().over("position")
    acted_on = pl.col("role").is_in(list(repairs.critics)) & (pl.col("index") < last_revision)
    turns = run.turns().filter(acted_on).select("item_id", "role", "texts").collect()
    critiques = [
        (row["item_id"], _critique(row["texts"], repairs.critics[row["role"]]))
        for row in turns.iter_rows(named=True)
    ]
    return [(item_id, words) for item_id, words in critiques if words]


def _critique(texts: list[str], field: str | None) -> str:
    """Give the words of a critique; empty where the reply could not be read, because it was then
    asked for once more."""
    try:
        critique = strict_json.parse(texts[0])[field] if field else ""
    except (UnreadableReply, LookupError, TypeError):
        return ""
    return critique if isinstance(critique, str) else ""
