"""A server in a process of its own that fails three answers in ten and keeps the bill.

A call is paid for when it gets a whole, good answer: only those are in the log, each with a line
when it came and one when the answer had gone out. It hangs or drips for a third of a second and
then hangs up: a client whose patience were as short would also leave good calls on a busy machine,
and pay them twice with nobody killed.
"""

import asyncio
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.loopback import replies
from tests.loopback.faulty import Faults, LoopbackServer, misbehave, well
from tests.loopback.http import Call, Line
from tests.runs.crash.worker import request_key

_HANGS_UP = 0.3  # seconds


@dataclass
class Billed(Faults):
    log: int = 0

    async def __call__(self, call: Call, line: Line) -> str:
        self._tries[call.key] += 1
        rng = random.Random(f"{self.seed}:{call.key}:{self._tries[call.key]}")
        if rng.random() < self.rate:
            await asyncio.sleep(self.latency)
            kind = rng.choice(self.kinds)
            try:
                async with asyncio.timeout(_HANGS_UP):
                    return await misbehave(kind, call, line, rng)
            except TimeoutError:
                line.close()
                return kind
        key = request_key(call.body["messages"], replies.schema_name(call.body))
        os.write(self.log, f"S {key}\n".encode())
        await asyncio.sleep(self.latency)
        await well(call, line)
        os.write(self.log, f"E {key}\n".encode())
        return "good"


async def serve(log: str, port_file: str, seed: int, rate: float, latency: float) -> None:
    bill = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with LoopbackServer(Billed(seed, rate, latency, log=bill)) as server:
        Path(f"{port_file}.part").write_text(str(server.port))
        Path(f"{port_file}.part").rename(port_file)
        await asyncio.Event().wait()


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(serve(given[0], given[1], int(given[2]), float(given[3]), float(given[4])))
