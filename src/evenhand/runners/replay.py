"""A finished run as a cast: every call is answered from its turns, and no model is asked."""

from pathlib import Path

from evenhand.agents import Cast
from evenhand.models.replay import ReplayModel
from evenhand.store import RunReader, RunTape


def replay_of(run: str | Path) -> Cast:
    """The cast of a recorded run, played back.

    >>> evenhand.run(items, model=replay_of("runs/first"), out="runs/again")
    """
    reader = RunReader(run)
    tape = RunTape(reader)
    played = {role: ReplayModel(tape, said) for role, said in reader.record.cast.items()}
    return Cast(played.pop("default"), played)
