"""Runs of StarDTox and MABRF whose drafts and verdicts are written down beforehand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from evenhand.agents import Cast
from evenhand.core import Item
from evenhand.methods import Method
from evenhand.models import ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import RunReader
from tests.stage import words_of

Lines = Mapping[str, Sequence[str]]  # by role


async def written(
    folder: Path, method: Method, items: Sequence[Item], lines: Mapping[str, Lines]
) -> RunReader:
    """`lines` by the first word of an item's prompt, which every request about it has."""
    left = {
        (word, role): list(said)
        for word, by_role in lines.items()
        for role, said in by_role.items()
    }

    def player(role: str) -> ScriptedModel:
        def say(request: ModelRequest) -> str:
            words = words_of(request)
            (word,) = (word for word in lines if word in words)
            return left[word, role].pop(0)

        return ScriptedModel(say, name=f"the {role}")

    roles = {role for by_role in lines.values() for role in by_role}
    cast = Cast(player("nobody"), {role: player(role) for role in roles})
    plan = RunPlan(method=method, cast=cast, source=ItemList(items), concurrency=1)
    await run(plan, folder, progress=Progress(), stop=StopSignal())
    return RunReader(folder)
