"""Checkpoints of PPO: all that a step reads, so that a resumed run takes the same steps.

A step depends on the weights that learn, Adam's moments and the step's number: the order of the
prompts, the sampling and the learning rate follow from the number and the recipe, and no generator
of random numbers has a state to keep. A folder is written under another name and renamed when all
of it, with its checksums, is on the disk.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from evenhand.training.checkpoints import drop_old, newest_whole, seal, to_disk
from evenhand.training.events import Tell

_STATE = "trainer_state.json"
_WEIGHTS = "weights.safetensors"
_MOMENTS = "moments.safetensors"
_NAME = "checkpoint-"

Metrics = dict[str, float]


@dataclass(frozen=True, slots=True)
class StepHistory:
    """What each step measured, and so how many were taken."""

    history: list[Metrics]

    @property
    def step(self) -> int:
        return len(self.history)


def save(
    out: Path,
    progress: StepHistory,
    weights: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    *,
    keep: int,
) -> None:
    part = out / f".{_NAME}{progress.step}.part"
    shutil.rmtree(part, ignore_errors=True)  # a killed run left it
    part.mkdir(parents=True)
    save_file({name: _still(p) for name, p in weights.items()}, part / _WEIGHTS)
    save_file(_moments(weights, optimizer), part / _MOMENTS)
    state = {"global_step": progress.step, "history": progress.history}
    (part / _STATE).write_text(json.dumps(state))
    seal(part)
    target = out / f"{_NAME}{progress.step}"
    shutil.rmtree(target, ignore_errors=True)  # a damaged one that was passed over
    part.rename(target)
    to_disk(out)
    drop_old(out, keep)


def restore(
    out: Path,
    weights: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    tell: Tell,
) -> StepHistory:
    """Go on from the newest checkpoint that is whole; from the start if there is none."""
    folder = newest_whole(out, tell)
    if folder is None:
        return StepHistory([])
    _load(folder, weights, optimizer)
    return StepHistory(json.loads((folder / _STATE).read_text())["history"])


def _load(
    folder: Path, weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    saved = load_file(folder / _WEIGHTS)
    moments: dict[str, dict[str, Tensor]] = {}
    for path, tensor in load_file(folder / _MOMENTS).items():
        name, _, kind = path.rpartition("/")
        moments.setdefault(name, {})[kind] = tensor
    with torch.no_grad():
        for name, parameter in weights.items():
            parameter.copy_(saved[name])
            device = parameter.device
            # Adam counts its steps on the CPU, wherever the weights are.
            optimizer.state[parameter] = {
                kind: tensor if kind == "step" else tensor.to(device)
                for kind, tensor in moments.get(name, {}).items()
            }


def _moments(
    weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> dict[str, Tensor]:
    return {
        f"{name}/{kind}": _still(tensor)
        for name, parameter in weights.items()
        for kind, tensor in optimizer.state[parameter].items()
    }


def _still(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()
