"""A run by batches in a process of its own, which dies at a named step."""

import asyncio
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.agents import Cast, Limits
from evenhand.core import Item
from evenhand.models import ChatModel, Endpoint
from evenhand.models.batch import BatchForm, BatchTiming, VllmFiles
from evenhand.models.endpoint import Service
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import folder, tables
from tests.models.batches.provider import KEY
from tests.runs.crash.worker import SometimesTwice, items

# Without waiting: the server of the tests ends a batch in some hundredths of a second.
QUICK = BatchTiming(settle=0.2, first_look=0.01, longest_look=0.05, listed=0.05, patience=60.0)


@dataclass(frozen=True, kw_only=True)
class Job:
    out: str
    url: str
    form: BatchForm = "openai"
    items: int = 60
    step: str = ""  # such as "before POST /batches": where it dies
    nth: int = 1
    listed: float = 0.05
    batch: bool = True
    params: tuple[tuple[str, Any], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()  # of the process: it is not that of the test


def plan(job: Job, source: list[Item] | None = None) -> RunPlan:
    model: ChatModel
    if job.form == "vllm":
        model = VllmFiles("logged")
    else:
        model = Endpoint(
            job.url, model="logged", api_key=KEY, batch=job.form, params=dict(job.params)
        )
    timing = BatchTiming(
        settle=QUICK.settle,
        first_look=QUICK.first_look,
        longest_look=QUICK.longest_look,
        listed=job.listed,
        patience=QUICK.patience,
    )
    return RunPlan(
        method=SometimesTwice(),
        cast=Cast(model),
        source=ItemList(source or items(job.items)),
        limits=Limits(calls=6),
        seed=7,
        batch=timing if job.batch else None,
    )


class _Steps:
    """Counts how often a step was come to, and dies at the one that is named."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.nth

    def passed(self, step: str) -> None:
        if self._job.step and step.startswith(self._job.step):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def plant(self) -> None:
        create, send, write = folder.LocalFolder.create, Service.send, folder.LocalAppender.write

        def created(this: folder.LocalFolder, name: str, data: bytes) -> None:
            end = name.partition(".")[2] if name.startswith("batches/") else name
            self.passed(f"before {end}")
            create(this, name, data)
            self.passed(f"after {end}")

        async def sent(this: Service, method: Any, path: str, *args: Any, **named: Any) -> Any:
            self.passed(f"before {method} {path}")
            answer = await send(this, method, path, *args, **named)
            self.passed(f"after {method} {path}")
            return answer

        def written(this: folder.LocalAppender, data: bytes) -> None:
            self.passed("before turn")
            write(this, data)

        folder.LocalFolder.create = created  # type: ignore[assignment,method-assign]
        Service.send = sent  # type: ignore[assignment,method-assign]
        folder.LocalAppender.write = written  # type: ignore[assignment,method-assign]


async def work(job: Job) -> Progress:
    planned, progress = plan(job), Progress()
    try:
        await run(planned, job.out, progress=progress, stop=StopSignal())
    finally:
        await planned.cast.close()
    return progress


def main(job: Job) -> None:
    """Run the job in this process; its errors go to a file beside the run."""
    tables.PART_ITEMS = 17
    os.environ.update(job.environment)
    _Steps(job).plant()
    try:
        asyncio.run(work(job))
    except BaseException:
        Path(f"{job.out}.err").write_text(traceback.format_exc())
        sys.exit(1)
    sys.exit(0)
