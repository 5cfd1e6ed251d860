"""A model writes the responses that judges are audited on: two for each of our tasks."""

import asyncio
from dataclasses import dataclass

from evenhand.experiments.request import Request, Watch
from evenhand.experiments.running import RunEnd, execute
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import (
    FILE,
    GeneratedScenarios,
    JudgeDesign,
    tasks,
    written,
)
from evenhand.runs.runners import ItemList
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

USUAL = JudgeDesign()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenariosResult:
    """The end of the writing. Without scenarios the run ended early, or was a pilot."""

    ended: RunEnd
    file: str
    scenarios: GeneratedScenarios | None = None

    @property
    def below_floor(self) -> bool:
        """Too few of the scenarios have two responses."""
        made = self.scenarios
        return made is not None and len(made.scenarios) < COVERAGE_FLOOR * made.asked


def scenario_tasks(bases: int, derived: int, seed: int) -> ItemList:
    """Draw the tasks.

    Args:
        bases: Base scenarios, of 63.
        derived: Scenarios of each base, of 10.
        seed: Draws the sample.

    Returns:
        One task per scenario.
    """
    design = JudgeDesign(bases=bases, derived=derived, pairs=0, seed=seed)
    return tasks(MalibuData().scenarios(), design)


async def write_scenarios(request: Request, watch: Watch) -> ScenariosResult:
    """Let the model write, and gather the scenarios in a file of the run folder.

    Args:
        request: The tasks, the method, the models and the settings of the run.
        watch: Receives progress events.

    Returns:
        How the run ended, and the scenarios with two responses.
    """
    out = request.settings.out
    ended, file = await execute(request, watch), f"{out}/{FILE}"
    if ended.early or ended.pilot is not None:
        return ScenariosResult(ended=ended, file=file)
    scenarios = await asyncio.to_thread(_gathered, out)
    return ScenariosResult(ended=ended, file=file, scenarios=scenarios)


def _gathered(out: str) -> GeneratedScenarios:
    scenarios = written(RunReader(out).results().collect())
    open_folder(out).replace(FILE, scenarios.to_bytes())
    return scenarios
