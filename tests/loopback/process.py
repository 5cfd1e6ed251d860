"""The server in a process of its own, where what it measures is not slowed by its client.

The child is told what to do over a pipe: a name to set on the behaviour, or a request for counts.
"""

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from tests.loopback.faulty import Behaviour, LoopbackServer


@dataclass(frozen=True)
class Reading:
    """Counters at one moment of the server's clock."""

    clock: float
    busy_seconds: float
    outcomes: dict[str, int]
    most_connections: int  # open at once, ever


class RemoteServer:
    """A handle on the child."""

    def __init__(self, pipe: Connection, port: int) -> None:
        self._pipe = pipe
        self.url = f"http://127.0.0.1:{port}/v1"

    def set(self, name: str, value: Any) -> None:
        self._ask((name, value))

    def read(self) -> Reading:
        reading: Reading = self._ask(None)
        return reading

    def _ask(self, wish: tuple[str, Any] | None) -> Any:
        self._pipe.send(wish)
        if not self._pipe.poll(10):
            raise TimeoutError("the server's process does not answer")
        return self._pipe.recv()


@contextlib.contextmanager
def in_own_process(behaviour: Behaviour, *, lists_models: bool = True) -> Iterator[RemoteServer]:
    # Forked from a process that has loaded what a behaviour needs: loading it takes seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tests.loopback.process", "evenhand.models"])
    ours, theirs = context.Pipe()
    child = context.Process(target=_child, args=(theirs, behaviour, lists_models), daemon=True)
    child.start()
    try:
        yield RemoteServer(ours, ours.recv())
    finally:
        child.kill()
        child.join()
        child.close()
        ours.close()
        theirs.close()


def _child(pipe: Connection, behaviour: Behaviour, lists_models: bool) -> None:
    asyncio.run(_serve(pipe, behaviour, lists_models))


async def _serve(pipe: Connection, behaviour: Behaviour, lists_models: bool) -> None:
    loop, orphaned = asyncio.get_running_loop(), asyncio.Event()
    async with LoopbackServer(behaviour) as server:
        server.lists_models = lists_models

        def obey() -> None:
            try:
                wish = pipe.recv()
            except (EOFError, OSError):  # whoever asked was killed
                loop.remove_reader(pipe.fileno())
                orphaned.set()
                return
            if wish is not None:
                setattr(behaviour, *wish)
            busy = server.counts.busy_until_now()
            outcomes = dict(server.counts.outcomes)
            pipe.send(Reading(loop.time(), busy, outcomes, server.most_connections))

        loop.add_reader(pipe.fileno(), obey)
        pipe.send(server.port)
        await orphaned.wait()  # or until killed
