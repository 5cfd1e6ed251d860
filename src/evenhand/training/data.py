"""The rows of a pairs folder: one sub-folder a bias type, in it Parquet files of two splits."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.core.errors import UserError, choices_for
from evenhand.training.folders import sha256_of_files

Row = dict[str, Any]

ALL = "default"
_NEEDED = ("prompt", "chosen", "rejected", "margin", "topic")


def rows(folder: Path, config: str = ALL, split: str = "train") -> list[Row]:
    """Read the rows of a split, in the order of its files.

    Args:
        folder: The folder of preference pairs.
        config: A bias type, or "default" for all of them.
        split: "train" or "test".

    Returns:
        The rows.

    Raises:
        UserError: If there are none.
    """
    selected = [row for file in _files(folder, config, split) for row in _read(file)]
    if not selected:
        raise UserError(f"{folder} has no {split} rows for {config!r}. Create more pairs.")
    return selected


def held_out(folder: Path, config: str = ALL) -> list[Row]:
    """The test split, or no rows if the folder has none."""
    return [row for file in _files(folder, config, "test") for row in _read(file)]


def low_ones(folder: Path, config: str = ALL) -> list[Row]:
    """All statements with a low score that are not held out, in a pair or not."""
    files = _low_files(folder, config)
    return [row for file in files for row in _read(file, ("prompt", "chosen", "topic"))]


def response(row: Row, side: str) -> str:
    """The text of `chosen` or `rejected`."""
    return str(row[side][-1]["content"])


def prompts(examples: list[Row]) -> list[list[dict[str, str]]]:
    """Each prompt once, in order of appearance."""
    unique: dict[str, list[dict[str, str]]] = {}
    for row in examples:
        unique.setdefault(json.dumps(row["prompt"]), row["prompt"])
    return list(unique.values())


def statements(examples: list[Row]) -> list[Row]:
    """Each prompt with each chosen answer once: a good answer is in many pairs."""
    unique: dict[str, Row] = {}
    for row in examples:
        unique.setdefault(json.dumps([row["prompt"], response(row, "chosen")]), row)
    return list(unique.values())


def sha256_of_rows(folder: Path, config: str = ALL, *, all_low: bool = False) -> str:
    """Compute the checksum of the files that a training reads.

    Args:
        folder: The folder of preference pairs.
        config: A bias type, or "default" for all of them.
        all_low: Whether the training reads the low statements in place of the pairs.

    Returns:
        The SHA-256 in hexadecimal.
    """
    return sha256_of_files(
        _low_files(folder, config) if all_low else _files(folder, config, "train")
    )


def _files(folder: Path, config: str, split: str) -> list[Path]:
    types = (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )
    if not any(folder.glob(f"*/{split}-*.parquet")) and split == "train":
        raise UserError(
            f"{folder} has no pairs. Create them with `evenhand train pairs from-debates` or "
            "`from-run`."
        )
    if config != ALL and config not in types:
        raise UserError(f"{folder} has no bias type {config!r}. {choices_for(config, types)}")
    places = [folder / name for name in (types if config == ALL else [config])]
    return _plain(file for directory in places for file in directory.glob(f"{split}-*.parquet"))


def _low_files(folder: Path, config: str) -> list[Path]:
    files = _plain(folder.glob(f"low-{'*' if config == ALL else config}.parquet"))
    if not files:
        raise UserError(
            f"{folder} has no low statements for {config!r}, only pairs; `evenhand train pairs "
            "from-debates` writes them. Make the pairs again, or leave out all_low"
        )
    return files


def _plain(files: Iterable[Path]) -> list[Path]:
    ordered = sorted(files)
    for file in ordered:
        if not file.is_file():
            raise UserError(
                f"{file} is not a regular file, so it was not opened. Replace it with the file "
                "itself."
            )
    return ordered


def _read(file: Path, needed: Sequence[str] = _NEEDED) -> list[Row]:
    try:
        table = pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"Could not read {file} as Parquet ({error}). Create the pairs again."
        ) from None
    if table.num_rows == 0:
        return []
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise UserError(
            f"{file} lacks the columns {', '.join(missing)}, so it has no pairs. Pass a folder of "
            "`evenhand train pairs`."
        )
    return list(table.to_pylist())
