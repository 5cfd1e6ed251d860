"""Where an actor's event loop spends its time, by cProfile.

Own time of each function, that of C functions counted for whoever calls them. cProfile makes many
small Python functions look dearer than they are; so this tells where to look, not how much it is.
(Sampling from a thread is worse: it gets the interpreter lock where others let go of it, at their
system calls, and finds everything there.)
"""

import asyncio
import collections
import cProfile
import os
import pstats
import time
from pathlib import Path
from typing import Any

_SAVE_SECONDS = 2.0
_OURS = "/src/evenhand/"


def runtime_env(folder: Path) -> dict[str, Any]:
    """For `ray.init`: every event loop of a worker is profiled into this folder."""
    folder.mkdir()

    def start() -> None:
        run_forever = asyncio.BaseEventLoop.run_forever

        def profiled(loop: asyncio.BaseEventLoop) -> None:
            profile = cProfile.Profile()

            def save() -> None:
                profile.disable()
                used = f"{time.thread_time():.1f}-{time.process_time():.1f}"
                profile.dump_stats(folder / f"{os.getpid()}-{id(loop)}-{used}")
                loop.call_later(_SAVE_SECONDS, save)
                profile.enable()

            loop.call_later(_SAVE_SECONDS, save)
            profile.enable()
            run_forever(loop)

        asyncio.BaseEventLoop.run_forever = profiled  # type: ignore[assignment, method-assign]

    return {"worker_process_setup_hook": start}


def summary(folder: Path, most: int = 40) -> str:
    """The profile of the event loop that used the most CPU; takes all of them away."""
    files = sorted(folder.iterdir(), key=lambda file: float(file.name.split("-")[2]))
    loop_cpu, actor_cpu = map(float, files[-1].name.split("-")[2:])
    places: collections.Counter[str] = collections.Counter()
    rooms: collections.Counter[str] = collections.Counter()
    stats: Any = pstats.Stats(str(files[-1]))
    for (path, _, function), (_, _, own, _, callers) in stats.stats.items():
        shares = {(path, function): own}
        if path == "~":
            shares = {(by[0], by[2]): share[2] for by, share in callers.items()}
        for (file, name), seconds in shares.items():
            places[f"{_short(file)} {name}"] += round(seconds * 1e6)
            rooms[_room(file)] += round(seconds * 1e6)
    for file in files:
        file.unlink()
    total = rooms.total()
    lines = [f"  the actor used {actor_cpu} s CPU so far, {loop_cpu} of them in its event loop:"]
    for counter in (rooms, places):
        rows = counter.most_common(most)
        lines += ["", *(f"  {spent / total:6.1%}  {place}" for place, spent in rows)]
    return "\n".join(lines)


def _short(path: str) -> str:
    for root in (_OURS, "site-packages/"):
        if root in path:
            return path.partition(root)[2]
    return Path(path).name


def _room(path: str) -> str:
    if _OURS in path:
        return "evenhand " + path.partition(_OURS)[2]
    return _short(path).split("/")[0] if "site-packages/" in path else f"Python {Path(path).name}"
