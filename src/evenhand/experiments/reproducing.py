"""The runs of a recipe are run one after the other, with caps for all of them together, and what
they show is laid out as the paper's table."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.core.errors import UserError
from evenhand.core.prices import Prices
from evenhand.experiments.caps import Caps, left_for, spent_within
from evenhand.experiments.measuring import Measurement, measure
from evenhand.experiments.request import Request
from evenhand.experiments.running import RunEnd
from evenhand.experiments.watch import Watch
from evenhand.findings.audit import audit_of, is_audit
from evenhand.findings.forecast import FrontierForecast, forecast, whole
from evenhand.findings.report import report
from evenhand.findings.reproduction import Found
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.spending import Spent
from evenhand.views.files import plain

Place = tuple[str, str]  # the model, and the name of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeJob:
    """A job is one run of a recipe with one model. It is prepared when its turn comes: its items
    may be the texts of an earlier one."""

    model: str
    run: str
    out: str
    prepare: Callable[[], tuple[Request, Measurement]]
    waits: bool = False  # for an earlier run
    played_back: bool = False  # every answer comes from that run

    @property
    def place(self) -> Place:
        return self.model, self.run


async def run_all(
    jobs: Sequence[RecipeJob], watch: Watch, caps: Caps
) -> tuple[RunEnd, Mapping[Place, tuple[int, ...]]]:
    """Run until all are done, a signal comes or a cap is reached; of a pilot, give the positions
    that each has answered."""
    pilots: dict[Place, tuple[int, ...]] = {}
    ended = RunEnd()
    for number, job in enumerate(jobs, 1):
        watch.note(f"run {number} of {len(jobs)}: {job.run} with {job.model}")
        others = spent_within(caps, (other.out for other in jobs if other is not job))
        ended = await _run(job, watch, caps, others)
        if ended.pilot is not None:
            pilots[job.place] = ended.pilot
        if ended.early:
            return replace(
                ended, calls=spent_within(caps, (other.out for other in jobs)).calls
            ), pilots
    return ended, pilots


async def _run(job: RecipeJob, watch: Watch, caps: Caps, others: Spent) -> RunEnd:
    try:
        request, measurement = job.prepare()
    except UserError as why:
        if not job.waits:
            raise
        watch.note(f"{job.run} is passed over: {why}")  # the run before gave it nothing to ask
        return RunEnd()
    request = left_for(request, caps, others)
    return (await measure(measurement, request, watch)).ended


async def forecasts(
    jobs: Sequence[RecipeJob],
    pilots: Mapping[Place, tuple[int, ...]],
    prices: Prices | None,
    of: str = "table",
    played_back: Sequence[str] = (),
) -> FrontierForecast:
    """Sum what the runs will take, from a pilot of each."""
    each = {}
    for job in jobs:
        if job.place in pilots:
            pilot = pilots[job.place]
            expected = await asyncio.to_thread(forecast, RunReader(job.out), pilot, prices)
            each[f"{job.model}: {job.run}"] = plain(expected.to_dict())
    return whole(each, of=of, played_back=played_back)


def found_in(folder: str) -> Found | None:
    """Read what a run shows, from its folder alone; None where nothing of it was run."""
    if not open_folder(folder).exists("run.json"):
        return None
    run = RunReader(folder)
    if not run.totals().items:
        return None
    result = report(instrument_of(run), run)
    return audit_of(result) if is_audit(result.instrument) else result
