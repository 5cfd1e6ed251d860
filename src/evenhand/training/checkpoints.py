"""Which checkpoint a killed training goes on from.

A checkpoint is written file by file, and last of all a list of their checksums. So one that was cut
short has no list, and one that lost a bit does not match it; the newest that is whole is taken.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path

from evenhand.training import folders
from evenhand.training.events import Note, Tell

_NAME = "checkpoint-"
_STATE = "trainer_state.json"
CHECKSUMS = "checksums.json"
_LISTS = (CHECKSUMS, f".{CHECKSUMS}.part")


def seal(checkpoint: Path) -> None:
    """The last write of a checkpoint: the checksum of each file in it."""
    folders.write(checkpoint / CHECKSUMS, json.dumps(_checksums(checkpoint), indent=1) + "\n")
    to_disk(checkpoint)


def newest_whole(folder: Path, tell: Tell) -> Path | None:
    """None if there is nothing to go on from. Each one passed over is told with its reason."""
    for checkpoint in numbered(folder):
        fault = fault_of(checkpoint)
        if fault is None:
            return checkpoint
        tell(Note(f"{checkpoint.name} is passed over: {fault}"))
    return None


def fault_of(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None if it is whole."""
    try:
        return _fault(checkpoint)
    except FileNotFoundError:
        return f"it has no {CHECKSUMS}, so it was being written when the training was killed"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError):
        return f"its {CHECKSUMS} or {_STATE} cannot be read"


def _fault(checkpoint: Path) -> str | None:
    expected = json.loads((checkpoint / CHECKSUMS).read_bytes())
    if not isinstance(expected, dict):
        raise TypeError
    actual = _checksums(checkpoint)
    changed = sorted(n for n in {*expected, *actual} if expected.get(n) != actual.get(n))
    if changed:
        return f"{', '.join(changed)} not as written"
    step = json.loads((checkpoint / _STATE).read_bytes())["global_step"]
    return None if f"{_NAME}{step}" == checkpoint.name else f"its {_STATE} is of step {step}"


def _checksums(checkpoint: Path) -> dict[str, str]:
    checksums = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in _LISTS:
            with path.open("rb") as opened:
                name = path.relative_to(checkpoint).as_posix()
                checksums[name] = hashlib.file_digest(opened, "sha256").hexdigest()
    return checksums


def numbered(folder: Path) -> list[Path]:
    """Newest first."""
    checkpoints = [path for path in folder.glob(f"{_NAME}*") if path.name[len(_NAME) :].isdecimal()]
    return sorted(checkpoints, key=lambda path: int(path.name[len(_NAME) :]), reverse=True)


def drop_old(folder: Path, keep: int) -> None:
    """Called when the newest is sealed, and not before: the one to go on from is always there."""
    for old in numbered(folder)[keep:]:
        shutil.rmtree(old)


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
