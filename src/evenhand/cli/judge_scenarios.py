"""`evenhand judge-scenarios`: the texts that judges are audited on, written by a model."""

from typing import Annotated

import typer

from evenhand.cli.execution import end, execute
from evenhand.cli.forecast import show_forecast
from evenhand.cli.run_options import RunCommand, with_run_options
from evenhand.cli.sampling import DrawSeed
from evenhand.cli.screen import out, print_json
from evenhand.findings.estimates import COVERAGE_FLOOR
from evenhand.instruments.judge.data import MalibuData
from evenhand.instruments.judge.design import FILE, JudgeDesign, tasks, written
from evenhand.methods.judging import TwoResponses
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder

_USUAL = JudgeDesign()


def _judge_scenarios(
    options: RunCommand,
    bases: Annotated[int, typer.Option(min=1, help="Base scenarios, of 63.")] = _USUAL.bases,
    derived: Annotated[
        int, typer.Option(min=1, help="Scenarios of each base, of 10.")
    ] = _USUAL.derived,
    sample_seed: DrawSeed = 0,
) -> None:
    """Let a model write the responses that judges are audited on.

    Two for each of our tasks, the second with the content of the first in other words: two calls a
    scenario. Who writes is `writer` in the cast, else the default model. Writes scenarios.jsonl
    into the run folder, for `audit judge --scenarios`. Ends with code 2 if fewer than 95 % of the
    scenarios have both.

    Example: evenhand judge-scenarios --bases 12 --out runs/written
    """
    design = JudgeDesign(bases=bases, derived=derived, pairs=0, seed=sample_seed)
    config = options.load()
    request = options.request(tasks(MalibuData().scenarios(), design), TwoResponses(), config)
    ended, settings = execute(request, config, json=options.json), request.settings
    if ended.pilot is not None:
        show_forecast(settings, ended, json=options.json)
        return
    if ended.stopped or ended.capped_by:
        end(ended, below_floor=False)
    result = written(RunReader(settings.out).results().collect())
    open_folder(settings.out).replace(FILE, result.to_bytes())
    counted = {
        "scenarios": len(result.scenarios),
        "asked": result.asked,
        "unequal_length": result.unequal_length,
        "same_words": result.same_words,
        "file": f"{settings.out}/{FILE}",
    }
    if options.json:
        print_json(counted)
    else:
        out.print(
            f"{len(result.scenarios):,} of {result.asked:,} scenarios have two responses; in "
            f"{result.unequal_length:,} one is over a tenth longer than the other, in "
            f"{result.same_words:,} both are the same words\n{settings.out}/{FILE}"
        )
    end(ended, below_floor=len(result.scenarios) < COVERAGE_FLOOR * result.asked)


judge_scenarios = with_run_options(
    _judge_scenarios, without=("method", "set_", "require_certified_judges", "system")
)
