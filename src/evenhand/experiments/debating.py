"""Run debates over topics, and report what was said."""

from dataclasses import dataclass

from evenhand.experiments.debate_sweeps import refuse_too_long
from evenhand.experiments.request import Request
from evenhand.experiments.running import RunEnd, execute
from evenhand.experiments.watch import Watch
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.training.debates.debate import Debate
from evenhand.training.debates.findings import DebateReport, debates
from evenhand.views.files import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class DebateResult:
    """The end of debates. Without a report nothing was finished, or it was a pilot."""

    ended: RunEnd
    report: DebateReport | None = None


def check_topics(request: Request, method: Debate) -> None:
    """Refuse topics without roles, or debates that need more calls than an item may make."""
    source = request.source
    refuse_too_long(method, source.read(0, len(source)), request.settings.limits)


async def run_debates(request: Request, watch: Watch) -> DebateResult:
    """Run a debate per topic and report them; debates.json goes into the run folder."""
    ended = await execute(request, watch)
    run = RunReader(request.settings.out)
    if ended.pilot is not None or not run.totals().items:
        return DebateResult(ended=ended)
    report = debates(run, request.settings.prices)
    open_folder(request.settings.out).replace("debates.json", to_json(report))
    return DebateResult(ended=ended, report=report)
