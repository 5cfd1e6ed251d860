"""The folders of a training: what may be read as a model, and where a training may write.

A folder that somebody else made can hold code, links and pipes. None of them is followed, and
nothing is deleted that no training of ours made.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.core.errors import UserError

RECORD = "train.json"
# What a training writes over and deletes. Where one of them is, a record must be.
_DELETED = ("model", "adapter", "trained", "checkpoints", ".model.part")
_FOLDERS = (*_DELETED, "logs")
STEPS = "steps.jsonl"
_FILES = (RECORD, f".{RECORD}.part", "job.json", ".job.json.part", STEPS)


def require_model(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder} is no folder of a Hugging Face model; `evenhand train from-gguf` makes one "
            "from a GGUF file"
        )
    for path in sorted(folder.iterdir()):
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is neither a file nor a folder; it is not opened")
    for file in sorted(folder.glob("*config.json")):
        if _has_key("auto_map", _json(file)):
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
                f"{source} lies in {out}, where the training writes and deletes; "
                "give an --out apart from what is read"
            )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no folder; name another with --out")
    strange = [*(out / name for name in _FILES if _is_strange(out / name, stat.S_ISREG))]
    for name in _FOLDERS:
        if _is_strange(out / name, stat.S_ISDIR):
            strange.append(out / name)
        else:
            strange += _strange_below(out / name)
    if strange:
        raise UserError(
            f"{strange[0]} is a link or no plain file; a training reads and writes only plain "
            "files of its own folder. Take it away, or name another --out"
        )
    there = [name for name in _DELETED if (out / name).exists()]
    if there and not (out / RECORD).is_file():
        raise UserError(
            f"{out} holds {', '.join(there)} and no {RECORD}, so no training of evenhand made it; "
            "nothing is written over. Name another --out"
        )


def write(file: Path, text: str) -> None:
    """Renamed into place: a kill never leaves half a file, and a link to it is not followed."""
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    with part.open("x") as opened:
        opened.write(text)
    part.replace(file)


def _is_strange(path: Path, expected: Any) -> bool:
    try:
        return not expected(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _strange_below(folder: Path) -> Iterator[Path]:
    for directory, folders, files in os.walk(folder):  # which follows no link
        yield from (p for n in folders if (p := Path(directory, n)).is_symlink())
        yield from (p for n in files if _is_strange(p := Path(directory, n), stat.S_ISREG))


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        raise UserError(f"{file} cannot be read: it is no JSON") from None


def _has_key(key: str, value: Any) -> bool:
    if isinstance(value, dict):
        return key in value or any(_has_key(key, inner) for inner in value.values())
    return isinstance(value, list) and any(_has_key(key, inner) for inner in value)
