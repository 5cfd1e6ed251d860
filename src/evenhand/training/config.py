"""The environment that the training libraries read, set before they are imported."""

import os
from importlib.util import find_spec

from evenhand.core.errors import UserError

_NEEDED = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")
_QUIET = {
    "HF_HUB_OFFLINE": "1",  # every model and every table is a folder
    "HF_HUB_DISABLE_TELEMETRY": "1",  # TRL reports each trainer otherwise
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # the progress that is shown is ours
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads slow a shared machine
    "TRANSFORMERS_VERBOSITY": "error",
}


def prepare() -> None:
    """What the user set stays as it is."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UserError(
            f"training needs {', '.join(missing)}: pip install 'evenhand[train]' "
            "(docs/training.md says how to have the CPU build of torch)"
        )
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def world_size() -> int:
    """How many processes the launcher says there are; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    return int(os.environ.get("RANK", "0"))
