"""Run the conformance suite on one or several tools."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from evenhand.core.errors import UserError
from evenhand.validation.conformance import others, ours, suite
from evenhand.validation.conformance.checks import Property, PropertyResult, ToolScores, judge
from evenhand.validation.conformance.page import Outcome, is_broken

OURS = "evenhand"
Scoring = Callable[[str], AbstractAsyncContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """What the properties of the suite showed of each tool."""

    properties: tuple[Property, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def is_broken(self) -> bool:
        """Whether a tool breaks a property."""
        return any(is_broken(judged) for _, judged in self.outcomes)

    def of(self, tool: str) -> Sequence[PropertyResult]:
        """What was shown of the tool whose name begins so."""
        return next(judged for name, judged in self.outcomes if name.startswith(tool))


async def run_conformance(
    tools: Sequence[str] = (),
    *,
    pythons: Sequence[str | Path] = (),
    write: str | Path | None = None,
    scoring: Scoring = lambda _: nullcontext(),
) -> Conformance:
    """Test what scorers of BBQ-like questions make of answers whose truth is known.

    Args:
        tools: Names of tools, or paths of adapters. Defaults to evenhand itself.
        pythons: The Python that has the tool, one for each tool but evenhand. Defaults to this
            one.
        write: Also keep the suite in this folder.
        scoring: Surrounds the scoring of each tool; receives its name.

    Returns:
        Each property of each tool: it holds, it is broken, or the tool prints no such number.

    Raises:
        UserError: If the number of `pythons` does not fit `tools`.
    """
    paired = _paired(tools, pythons)
    if write is not None:
        suite.write(Path(write))
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "suite"
        suite.write(folder)
        properties = suite.read_properties(folder)
        results = [await _scored(name, python, folder, scoring) for name, python in paired]
    return Conformance(
        properties=tuple(properties),
        outcomes=tuple((result.tool, judge(properties, result)) for result in results),
    )


def _paired(tools: Sequence[str], pythons: Sequence[str | Path]) -> list[tuple[str, str]]:
    """Each tool with the Python that runs it."""
    tools = tools or [OURS]
    elsewhere = [tool for tool in tools if tool != OURS]
    pythons = pythons or [sys.executable] * len(elsewhere)
    if len(pythons) != len(elsewhere):
        raise UserError(
            f"--python was given {len(pythons)} times for {len(elsewhere)} tools: "
            "give one for each, or none"
        )
    by_tool = iter(pythons)
    return [(tool, "" if tool == OURS else str(next(by_tool))) for tool in tools]


async def _scored(name: str, python: str, folder: Path, scoring: Scoring) -> ToolScores:
    async with scoring(name):
        if name == OURS:
            return await ours.scores(folder, folder.parent / "runs")
        return await asyncio.to_thread(others.scores, name, python, folder)
