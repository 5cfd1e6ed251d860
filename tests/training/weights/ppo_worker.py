"""A training by PPO in a process of its own, which may be told to kill itself in a save."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from evenhand.training import folders, ppo
from evenhand.training.events import Note, TrainingStep
from evenhand.training.ppo import step as steps
from evenhand.training.recipes import PpoRecipe


def killed_in_the_save_of(step: int) -> None:
    """All bytes of the checkpoint are written, but for the list of their checksums."""
    real = folders.seal

    def seal(folder: Path) -> None:
        if folder.name == f".checkpoint-{step}.part":
            os.kill(os.getpid(), signal.SIGKILL)
        real(folder)

    vars(steps)["seal"] = seal


def main(given: dict[str, Any]) -> None:
    if given.get("kill_at"):
        killed_in_the_save_of(given["kill_at"])
    losses: list[float | None] = []

    def tell(event: TrainingStep | Note) -> None:
        if isinstance(event, TrainingStep):
            losses.append(event.loss)

    model, pairs, out, reward = (Path(given[name]) for name in ("model", "pairs", "out", "reward"))
    ppo.train(PpoRecipe(**given["recipe"]), model, pairs, out, reward=reward, force=True, tell=tell)
    if os.environ.get("RANK", "0") == "0":
        (out / "losses.json").write_text(json.dumps(losses))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
