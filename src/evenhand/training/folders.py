"""The folders of a training: what may be read as a model, where a training may write, and which
checkpoint a killed training goes on from.

A folder that somebody else made can hold code, links and pipes. None of them is followed, and
nothing is deleted that no training of ours made. A checkpoint is written file by file, and last of
all a list of their checksums. So one that was cut short has no list, and one that lost a bit does
not match it; the newest that is whole is taken.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError
from evenhand.training.events import STEPS, Note, Tell

RECORD = "train.json"
# What a training writes over and deletes. Where one of them is, a record must be.
_DELETED = ("model", "adapter", "trained", "checkpoints", ".model.part")
_FOLDERS = (*_DELETED, "logs")
_FILES = (RECORD, f".{RECORD}.part", "job.json", ".job.json.part", STEPS)


def require_model(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder} is not a Hugging Face model. Create one from a GGUF file with `evenhand "
            "train from-gguf`."
        )
    for path in sorted(folder.iterdir()):
        if not path.is_file() and not path.is_dir():
            raise UserError(
                f"{path} is neither a file nor a folder, so it was not opened. Replace it."
            )
    for file in sorted(folder.glob("*config.json")):
        try:
            content = json.loads(file.read_bytes())
        except ValueError:
            raise UserError(f"{file} is not valid JSON. Download the model again.") from None
        if _has_key("auto_map", content):
            raise UserError(
                f"{file} names code that comes with the model (auto_map), which evenhand never "
                "runs and never hands on. Take a model whose kind transformers knows by itself; "
                "if this is one, delete the entry"
            )


def claim(out: Path, *sources: Path | None) -> None:
    """Raises unless a training may write into `out`, which reads from `sources`."""
    for source in filter(None, sources):
        if source.resolve().is_relative_to(out.resolve()):
            raise UserError(
                f"{source} is inside {out}, where the training writes and deletes files. Pass an "
                "--out outside of it."
            )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is not a folder. Choose another --out.")
    strange = [*(out / name for name in _FILES if _is_strange(out / name, stat.S_ISREG))]
    for name in _FOLDERS:
        if _is_strange(out / name, stat.S_ISDIR):
            strange.append(out / name)
        else:
            strange += _strange_below(out / name)
    if strange:
        raise UserError(
            f"{strange[0]} is a link or not a regular file, and a training uses only regular files "
            "of its own folder. Remove it, or choose another --out."
        )
    there = [name for name in _DELETED if (out / name).exists()]
    if there and not (out / RECORD).is_file():
        raise UserError(
            f"{out} has {', '.join(there)} and no {RECORD}, so it is not a training of evenhand. "
            "Nothing was overwritten. Choose another --out."
        )


def write(file: Path, text: str) -> None:
    """Renamed into place: a kill never leaves half a file, and a link to it is not followed."""
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    with part.open("x") as opened:
        opened.write(text)
    part.replace(file)


def sha256_of_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def sha256_of_files(files: Iterable[Path]) -> str:
    """One checksum of the bytes of several files, in their order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(bytes.fromhex(sha256_of_file(file)))
    return digest.hexdigest()


def _is_strange(path: Path, expected: Any) -> bool:
    try:
        return not expected(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _strange_below(folder: Path) -> Iterator[Path]:
    for directory, folders, files in os.walk(folder):  # which follows no link
        yield from (p for n in folders if (p := Path(directory, n)).is_symlink())
        yield from (p for n in files if _is_strange(p := Path(directory, n), stat.S_ISREG))


def _has_key(key: str, value: Any) -> bool:
    if isinstance(value, dict):
        return key in value or any(_has_key(key, inner) for inner in value.values())
    return isinstance(value, list) and any(_has_key(key, inner) for inner in value)


_NAME = "checkpoint-"
_STATE = "trainer_state.json"
CHECKSUMS = "checksums.json"
_LISTS = (CHECKSUMS, f".{CHECKSUMS}.part")


def seal(checkpoint: Path) -> None:
    """The last write of a checkpoint: the checksum of each file in it."""
    write(checkpoint / CHECKSUMS, json.dumps(_checksums(checkpoint), indent=1) + "\n")
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
            checksums[path.relative_to(checkpoint).as_posix()] = sha256_of_file(path)
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
