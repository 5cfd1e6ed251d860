"""A runner in a process of its own, made to die, stall or meet a full disk at a named moment.

`python worker.py job.json`, or `main(job)` in a forked process. The store is not hooked:
`LocalFolder` is wrapped from outside. Every call to the model leaves a line at its start and at
its end in a log that the runner knows nothing of, so that what was paid for can be counted
independently.
"""

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from evenhand.agents import Ask, Cast, Limits
from evenhand.core import Answer, Item
from evenhand.core.errors import EvenhandError, ModelError, ModelRefused
from evenhand.methods import StarDTox
from evenhand.methods.stardtox import WRITER
from evenhand.models import Endpoint, ModelReply, ModelRequest, ScriptedModel
from evenhand.runs.runners import ItemList, Progress, RunPlan, StopSignal, run
from evenhand.runs.store import folder, ledger, tables

REFUSED = 3  # exit code: an error that evenhand raised on purpose
BROKEN = 1  # exit code: any other


@dataclass(frozen=True, kw_only=True)
class Point:
    """The `nth` time that `op` is done to a name with this beginning: `do` it before or after."""

    # Of a folder; "append" to a journal; "link": in `create`, when the name has appeared; "unlink":
    # in `remove`, one file of many.
    op: str
    name: str = ""
    when: str = "before"
    nth: int = 1
    do: str = "kill"  # "kill", "stop", "tear" (half an append, then kill), "fill" (the disk),
    # "crawl" (a slow disk, which then is full)


@dataclass(frozen=True, kw_only=True)
class Job:
    out: str
    log: str  # of calls; `<log>.<pid>.err` and `.end` are the process's own
    items: int = 150
    concurrency: int = 50
    part_items: int = 37
    compacted: int = 0  # entries of the ledger that are put together; 0: as many as ever
    seconds: float = 0.004  # of one call, ± half
    points: tuple[Point, ...] = ()
    steal_lock: bool = False
    url: str = ""  # an endpoint to ask instead of the script
    calls: int = 6  # too few for some items: they end as budget_spent
    noisy: bool = False  # a model that never says the same twice
    pid: int = 0  # what the process takes its number for: in a container it is always 1


# -- what is run ---------------------------------------------------------------------------------


def items(count: int) -> list[Item]:
    """Open texts, answers to repair and questions with choices, of very different lengths."""
    made = []
    for number in range(count):
        prompt = f"Task {number}: describe a nurse. " + "Take care. " * (number * 37 % 90)
        choices = ("the nurse", "the doctor", "unknown") if number % 5 == 4 else ()
        answer = "An answer from before." if number % 7 == 3 and not choices else ""
        made.append(Item(id=f"i{number}", prompt=prompt, choices=choices, answer=answer))
    return made


def script(words: str, schema: str | None, luck: str = "") -> str | ModelError:
    """The same words get the same answer; some get none, some an unreadable one."""
    roll = int(hashlib.sha256(f"{words}{schema}{luck}".encode()).hexdigest()[:8], 16)
    if roll % 61 == 0:
        return ModelRefused("the scripted endpoint said no", attempts=1)
    if roll % 23 == 0:
        return "{" if schema else ""
    match schema:
        case None:
            return f"Draft {roll}. " + "A nurse is kind. " * (roll % 50)
        case "choice":
            return json.dumps({"reason": f"r{roll}", "answer": "ABC"[roll % 3]})
        case "support":
            return json.dumps({"reason": f"r{roll}", "support": roll % 140 % 101})
        case "harm":
            return json.dumps({"reason": f"r{roll}", "harm": roll % 16})
        case _:
            traits = {"fluency": 90, "coherence": 85, "relevance": 76 + roll % 24}
            return json.dumps({"reason": f"r{roll}", **traits})


class LoggedModel(ScriptedModel):
    """Says what the script says, after a moment, and keeps the log of what was paid for."""

    def __init__(self, job: Job) -> None:
        super().__init__(self._say, name="logged")
        self._job = job
        self._log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = f"{request.position}:{request.sha256}:{request.occurrence}"
        os.write(self._log, f"S {key}\n".encode())
        await asyncio.sleep(self._job.seconds * random.uniform(0.5, 1.5))
        os.write(self._log, f"E {key}\n".encode())
        return await super().complete(request)

    async def close(self) -> None:
        os.close(self._log)

    def _say(self, request: ModelRequest) -> str | ModelError:
        words = "\n".join(message.content for message in request.messages)
        schema = request.schema.name if request.schema else None
        return script(words, schema, os.urandom(8).hex() if self._job.noisy else "")


class SometimesTwice(StarDTox):
    """Some items make one request twice, as a vote does."""

    async def answer(self, item: Item, ask: Ask) -> Answer:
        if not item.choices and "Take care. " * 60 in item.prompt:
            await ask(WRITER, prompt=item.prompt)
        return await StarDTox.answer(self, item, ask)


def plan(job: Job) -> RunPlan:
    model = Endpoint(job.url, model="logged") if job.url else LoggedModel(job)
    return RunPlan(
        method=SometimesTwice(),
        cast=Cast(model),
        source=ItemList(items(job.items)),
        limits=Limits(calls=job.calls),
        concurrency=job.concurrency,
    )


# -- moments -------------------------------------------------------------------------------------


class _Moment:
    def __init__(self, point: Point, job: Job, pid: int) -> None:
        self._point = point
        self._job = job
        self._pid = pid
        self._left = point.nth

    def due(self, op: str, name: str, when: str) -> bool:
        point = self._point
        if point.op != op or point.when != when or not name.startswith(point.name):
            return False
        self._left -= 1
        return self._left == 0

    def strike(self, tear: Callable[[], object]) -> None:
        match self._point.do:
            case "stop":
                os.kill(self._pid, signal.SIGSTOP)
            case "fill":
                fill(Path(self._job.out).parent)
            case "crawl":
                time.sleep(1.0)
                fill(Path(self._job.out).parent)
            case "tear":
                tear()
                os.kill(self._pid, signal.SIGKILL)
            case _:
                os.kill(self._pid, signal.SIGKILL)


def fill(place: Path) -> None:
    """Take all the room there is on this disk."""
    with contextlib.suppress(OSError), open(place / "ballast", "ab", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def plant(job: Job) -> None:
    """Wrap what touches the disk, so that the job's moments come."""
    around = functools.partial(_around, [_Moment(point, job, os.getpid()) for point in job.points])
    for op in ("create", "remove", "names", "lock"):
        _wrap(folder.LocalFolder, op, op, around)
    _wrap(folder.LocalAppender, "write", "append", around)

    link = os.link

    def linked(hidden: Path, path: Path) -> None:
        name = str(Path(path).relative_to(job.out))
        around("link", name, lambda: link(hidden, path), lambda: None)

    os.link = linked  # type: ignore[assignment]
    unlink = os.unlink

    def unlinked(path: Path) -> None:  # as pathlib calls it
        name = os.path.relpath(path, job.out)
        around("unlink", name, lambda: unlink(path), lambda: None)

    os.unlink = unlinked  # type: ignore[assignment]


def _wrap(kind: type, method: str, op: str, around: Callable[..., Any]) -> None:
    whole = getattr(kind, method)

    def wrapped(self: Any, *args: Any, **named: Any) -> Any:
        name = args[0] if args and isinstance(args[0], str) else ""
        half = functools.partial(_half_an_append, self, *args)
        return around(op, name, functools.partial(whole, self, *args, **named), half)

    setattr(kind, method, wrapped)


def _around(
    moments: list[_Moment],
    op: str,
    name: str,
    act: Callable[[], Any],
    half: Callable[[], object],
) -> Any:
    for moment in moments:
        if moment.due(op, name, "before"):
            moment.strike(half)
    try:
        return act()
    finally:
        for moment in moments:
            if moment.due(op, name, "after"):
                moment.strike(half)


def _half_an_append(file: folder.LocalAppender, data: bytes) -> None:
    os.write(file._descriptor, data[: len(data) // 2])


# -- the process ---------------------------------------------------------------------------------


async def work(job: Job) -> Progress:
    planned, progress, stop = plan(job), Progress(), StopSignal()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        await run(planned, job.out, progress=progress, stop=stop, steal_lock=job.steal_lock)
    finally:
        await planned.cast.close()
    return progress


def main(job: Job) -> None:
    """Run the job; leave how it ended in `<log>.<pid>.end` and in the exit code."""
    own = f"{job.log}.{os.getpid()}"
    os.dup2(os.open(f"{own}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    tables.PART_ITEMS = job.part_items
    ledger.COMPACTED = job.compacted or ledger.COMPACTED
    plant(job)
    if job.pid:
        os.getpid = lambda: job.pid
    code, end = 0, {}
    try:
        end = asyncio.run(work(job)).snapshot()
    except EvenhandError as error:
        code, end = REFUSED, {"error": type(error).__name__, "message": str(error)}
    except BaseException as error:
        code, end = BROKEN, {"error": type(error).__name__, "message": traceback.format_exc()}
    Path(f"{own}.end").write_text(json.dumps(end))
    sys.exit(code)


# -- a server in a process of its own ----------------------------------------------------------


def request_key(messages: list[dict[str, str]], schema: str | None) -> str:
    """A request as the server sees it. Every item's prompt is another, so its item is in it."""
    said = [[message["role"], message["content"]] for message in messages]
    return hashlib.sha256(json.dumps([said, schema]).encode()).hexdigest()


def serve(log: str, port_file: str, seconds: float) -> None:
    """An OpenAI-compatible server over the script, with the same log of what was paid for."""
    calls = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        schema = body.get("response_format", {}).get("json_schema", {}).get("name")
        key = request_key(body["messages"], schema)
        os.write(calls, f"S {key}\n".encode())
        await asyncio.sleep(seconds * random.uniform(0.5, 1.5))
        said = script("\n".join(m["content"] for m in body["messages"]), schema)
        os.write(calls, f"E {key}\n".encode())
        if isinstance(said, ModelError):
            return web.json_response({"error": {"message": "no"}}, status=403)
        choice = {"index": 0, "message": {"role": "assistant", "content": said}}
        usage = {"prompt_tokens": 10, "completion_tokens": len(said.split())}
        return web.json_response(
            {"model": "logged", "choices": [{**choice, "finish_reason": "stop"}], "usage": usage}
        )

    async def forever() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        Path(f"{port_file}.part").write_text(str(port))
        Path(f"{port_file}.part").rename(port_file)
        await asyncio.Event().wait()

    asyncio.run(forever())


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    given["points"] = tuple(Point(**point) for point in given["points"])
    main(Job(**given))
