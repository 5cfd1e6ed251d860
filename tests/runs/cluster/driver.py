"""A run in a process of its own: `python driver.py job.json`. On the cluster whose address the job
has, or without one by the local runner."""

import asyncio
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from evenhand.agents import Cast, Limits
from evenhand.core.errors import EvenhandError, ModelError
from evenhand.instruments.bbq.data import BbqData
from evenhand.instruments.bbq.sample import BbqSampling, BbqSource, sample
from evenhand.methods import named
from evenhand.models import Endpoint, ModelRequest, ScriptedModel
from evenhand.models.base import ChatModel
from evenhand.runs.runners import JsonlFile, Progress, RunPlan, Source, StopSignal, run
from evenhand.runs.runners.purse import SpendingCap
from evenhand.runs.runners.ray import run_on_ray
from evenhand.runs.store.spending import spent_on
from tests.runs.crash.worker import script


@dataclass(frozen=True, kw_only=True)
class Job:
    out: str
    items: str = ""  # a JSONL file
    bbq: str = ""  # or the folder of BBQ's data, of which a sample is drawn
    address: str = ""
    actors: int = 2
    concurrency: int = 24
    url: str = ""  # of an endpoint; without one the scripted model answers
    steal_lock: bool = False
    attempt_timeout: float = 0.3
    method: str = "stardtox"
    max_calls: int = 0  # of the whole run; 0: no cap


def say(request: ModelRequest) -> str | ModelError:
    words = "\n".join(message.content for message in request.messages)
    return script(words, request.schema.name if request.schema else None)


def source(job: Job) -> Source:
    if not job.bbq:
        return JsonlFile(Path(job.items))
    records = BbqData(local=Path(job.bbq), cache=Path(job.out).parent / "cache").records()
    sampling = BbqSampling(per_category=24)
    return BbqSource(sample(records, sampling), sampling)


def plan(job: Job) -> RunPlan:
    model: ChatModel = ScriptedModel(say)
    if job.url:
        model = Endpoint(job.url, model="pretended", attempt_timeout=job.attempt_timeout)
    return RunPlan(
        method=named(job.method)(),
        cast=Cast(model),
        source=source(job),
        limits=Limits(seconds=240.0),
        seed=7,
        concurrency=job.concurrency,
    )


def purse(job: Job) -> SpendingCap | None:
    if not job.max_calls:
        return None
    return SpendingCap(max_calls=job.max_calls, spent_calls=spent_on(job.out, None).calls)


async def work(job: Job) -> tuple[Progress, str | None]:
    progress, stop, capped = Progress(), StopSignal(), purse(job)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    if job.address:
        await run_on_ray(
            plan(job),
            job.out,
            progress=progress,
            stop=stop,
            actors=job.actors,
            address=job.address,
            steal_lock=job.steal_lock,
            purse=capped,
        )
    else:
        await run(plan(job), job.out, progress=progress, stop=stop, steal_lock=job.steal_lock)
    return progress, capped.exhausted if capped else None


def main() -> int:
    job = Job(**json.loads(Path(sys.argv[1]).read_text()))
    try:
        progress, capped_by = asyncio.run(work(job))
        end, code = {**progress.snapshot(), "capped_by": capped_by}, 0
    except EvenhandError as error:
        end, code = {"error": type(error).__name__, "message": str(error)}, 3
    print(json.dumps(end))
    return code


if __name__ == "__main__":
    sys.exit(main())
