"""Checkpoints of PPO: all that a step reads, so that a resumed run takes the same steps.

A step depends on the weights that learn, Adam's moments and the step's number: the order of the
prompts, the sampling and the learning rate follow from the number and the recipe, and no generator
of random numbers has a state to keep. A folder is written under another name and renamed when all
of it is on the disk.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from evenhand.training.checkpoints import numbered, to_disk
from evenhand.training.events import Note, Tell

_STATE = "trainer_state.json"  # written last; names every other file with its checksum
_WEIGHTS = "weights.safetensors"
_MOMENTS = "moments.safetensors"
_NAME = "checkpoint-"

Metrics = dict[str, float]


@dataclass(frozen=True, slots=True)
class Progress:
    """What each step measured, and so how many were taken."""

    history: list[Metrics]

    @property
    def step(self) -> int:
        return len(self.history)


def save(
    out: Path,
    progress: Progress,
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
    state = {
        "global_step": progress.step,
        "sha256": {name: _sha256(part / name) for name in (_WEIGHTS, _MOMENTS)},
        "history": progress.history,
    }
    (part / _STATE).write_text(json.dumps(state))
    to_disk(part)
    whole = out / f"{_NAME}{progress.step}"
    shutil.rmtree(whole, ignore_errors=True)  # a damaged one that was passed over
    part.rename(whole)
    to_disk(out)
    for old in numbered(out)[keep:]:
        shutil.rmtree(old)


def restore(
    out: Path,
    weights: Mapping[str, nn.Parameter],
    optimizer: torch.optim.Optimizer,
    tell: Tell,
) -> Progress:
    """Go on from the newest checkpoint that is whole; from the start if there is none."""
    for folder in numbered(out):
        state = _read(folder)
        if state is None:
            tell(Note(f"{folder.name} is passed over: it is damaged"))
            continue
        _load(folder, weights, optimizer)
        return Progress(state["history"])
    return Progress([])


def _load(
    folder: Path, weights: Mapping[str, nn.Parameter], optimizer: torch.optim.Optimizer
) -> None:
    kept = load_file(folder / _WEIGHTS)
    moments: dict[str, dict[str, Tensor]] = {}
    for path, tensor in load_file(folder / _MOMENTS).items():
        name, _, kind = path.rpartition("/")
        moments.setdefault(name, {})[kind] = tensor
    with torch.no_grad():
        for name, parameter in weights.items():
            parameter.copy_(kept[name])
            device = parameter.device
            # Adam counts its steps on the CPU, wherever the weights are.
            optimizer.state[parameter] = {
                kind: tensor if kind == "step" else tensor.to(device)
                for kind, tensor in moments.get(name, {}).items()
            }


def _read(folder: Path) -> dict[str, Any] | None:
    """The state, if every file is there as it was written."""
    try:
        state: dict[str, Any] = json.loads((folder / _STATE).read_text())
        whole = all(_sha256(folder / name) == digest for name, digest in state["sha256"].items())
    except (OSError, ValueError, KeyError):
        return None
    return state if whole and folder.name == f"{_NAME}{state['global_step']}" else None


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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
