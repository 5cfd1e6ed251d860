"""A process of a training run; `evenhand train … --processes N` starts several.

Other launchers, such as FSDP's, can also start them with the job file of the command:
accelerate launch --config_file fsdp2.yaml -m evenhand.cli.train_worker runs/sft/job.json 4
"""

import sys
from pathlib import Path

from evenhand.cli.screen import problem
from evenhand.cli.train import TrainingDisplay
from evenhand.core.errors import EvenhandError
from evenhand.training.config import prepare, rank


def main(job: str, processes: str) -> int:
    from evenhand.training import launch  # noqa: PLC0415 seconds to import

    try:
        prepare()
        from evenhand.training.stage import require_world_size  # noqa: PLC0415 after `prepare`

        require_world_size(int(processes))
        with TrainingDisplay() as display:
            launch.run(launch.TrainingJob.load(Path(job)), display)
    except EvenhandError as error:
        if rank() == 0:
            problem(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
