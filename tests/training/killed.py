"""Runs trainings and kills each with SIGKILL as soon as a step is taken.

`python -m training.killed STEP JOB…`: the libraries are imported once, then each job has a
fork of its own.
"""

import os
import signal
import sys
from pathlib import Path

import torch

from evenhand.training import launch, reward, rloo, sft  # noqa: F401 imported before the forks
from evenhand.training.events import Note, Step


def _child(job: Path, last: int) -> None:
    def tell(event: Step | Note) -> None:
        if isinstance(event, Step) and event.step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    launch.run(launch.Job.load(job), tell)


def main() -> int:
    last, jobs = int(sys.argv[1]), [Path(name) for name in sys.argv[2:]]
    torch.set_num_threads(1)
    for job in jobs:
        child = os.fork()
        if child == 0:
            _child(job, last)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return 1  # it ended by itself
    return 0


if __name__ == "__main__":
    sys.exit(main())
