"""Runs trainings, each of which kills itself with SIGKILL: after a step, or inside a save.

`python -m training.killed WHERE JOB WHERE JOB …`: the libraries are imported once, then each job
has a fork of its own. WHERE is `step` (after step 5), or what the save of step 6 has not written
yet: `optimizer`, `random`, `checksums`.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer

from evenhand.training import (  # noqa: F401 imported before the forks
    from_pairs,
    launch,
    reward,
    rloo,
    stage,
)
from evenhand.training.events import Note, TrainingStep

WRITES = {
    "optimizer": (Trainer, "_save_optimizer_and_scheduler"),
    "random": (Trainer, "_save_rng_state"),
    "checksums": (stage, "seal"),
}


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _killed_before(write: str) -> None:
    """The two saves before this one are left to themselves."""
    owner, name = WRITES[write]
    real, calls = getattr(owner, name), iter(range(3))

    def write_or_die(*given: Any) -> Any:
        return _kill() if next(calls) == 2 else real(*given)

    setattr(owner, name, write_or_die)


def _child(where: str, job: Path) -> None:
    def tell(event: TrainingStep | Note) -> None:
        if where == "step" and isinstance(event, TrainingStep) and event.step == 5:
            _kill()

    if where != "step":
        _killed_before(where)
    launch.run(launch.TrainingJob.load(job), tell)


def main(given: list[str]) -> int:
    torch.set_num_threads(1)
    for where, job in zip(given[::2], given[1::2], strict=True):
        child = os.fork()
        if child == 0:
            _child(where, Path(job))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return 1  # it ended by itself
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
