"""Which checkpoint a killed training goes on from.

The trainer writes a checkpoint file by file and `trainer_state.json` last, and takes the one with
the highest number when it resumes: one cut short ends the resume. So the newest whole one is found
here.
"""

import json
import os
import struct
import zipfile
from pathlib import Path

from evenhand.training.events import Note, Tell

_NAME = "checkpoint-"
_STATE = "trainer_state.json"


def newest_whole(folder: Path, tell: Tell, processes: int = 1) -> Path | None:
    """None if there is nothing to go on from. Each one passed over is told with its reason."""
    for found in numbered(folder):
        fault = fault_of(found, processes)
        if fault is None:
            return found
        tell(Note(f"{found.name} is passed over: {fault}"))
    return None


def fault_of(checkpoint: Path, processes: int = 1) -> str | None:
    """What is wrong with a checkpoint; None if it is whole."""
    try:
        step = json.loads((checkpoint / _STATE).read_text())["global_step"]
    except FileNotFoundError:
        return f"it has no {_STATE}, so it was being written when the training was killed"
    except (ValueError, KeyError, TypeError):
        return f"its {_STATE} cannot be read"
    if f"{_NAME}{step}" != checkpoint.name:
        return f"its {_STATE} is of step {step}"
    states = (
        ["rng_state.pth"] if processes == 1 else [f"rng_state_{n}.pth" for n in range(processes)]
    )
    for name in ("optimizer.pt", "scheduler.pt", *states):
        if not (checkpoint / name).is_file():
            return f"it has no {name}, as one for {processes} process(es) would"
    cut = [file.name for file in sorted(checkpoint.iterdir()) if not _whole(file)]
    return f"{', '.join(cut)} cut short" if cut else None


def _whole(file: Path) -> bool:
    if file.suffix == ".safetensors":
        return _whole_safetensors(file)
    if file.suffix in (".pt", ".pth"):
        return zipfile.is_zipfile(file)  # a zip's table of contents stands at its end
    return True


def _whole_safetensors(file: Path) -> bool:
    """The header says where the last tensor ends."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = opened.read(8)
        if len(start) < 8 or (length := struct.unpack("<Q", start)[0]) > size:
            return False
        try:
            header = json.loads(opened.read(length))
        except ValueError:
            return False
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return bool(size == 8 + length + max(ends, default=0))


def numbered(folder: Path) -> list[Path]:
    """Newest first."""
    found = [path for path in folder.glob(f"{_NAME}*") if path.name[len(_NAME) :].isdigit()]
    return sorted(found, key=lambda path: int(path.name[len(_NAME) :]), reverse=True)


def to_disk(folder: Path) -> None:
    """A finished folder survives a power cut, and its files can be read by others: safetensors
    writes for the owner alone."""
    for path in (*folder.iterdir(), folder):
        if path.is_file():
            path.chmod(0o644)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
