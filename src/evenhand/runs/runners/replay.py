"""A finished run can be a cast: every call is answered from its recorded turns, and no model is
asked."""

from pathlib import Path

from evenhand.agents import Cast
from evenhand.models.replay import ReplayModel
from evenhand.runs.store import RunReader, RunTape


def replay_of(run: str | Path) -> Cast:
    """Build the cast of a recorded run, which answers every call from that run's turns.

    >>> evenhand.mitigate(items, model=replay_of("runs/first"), out="runs/again")
    """
    reader = RunReader(run)
    tape = RunTape(reader)
    played = {role: ReplayModel(tape, player) for role, player in reader.record.cast.items()}
    system = {role: s["system"] for role, s in reader.record.cast.items() if "system" in s}
    return Cast(played.pop("default"), played, system)
