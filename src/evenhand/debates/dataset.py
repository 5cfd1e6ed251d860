"""A folder of pairs in the layout that Hugging Face's `datasets` loads: a folder for each bias type
with a file for each side, and a data card that names them as configurations."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.debates.account import PairsReport
from evenhand.debates.card import card
from evenhand.debates.pairs import Pair
from evenhand.debates.splits import SIDES, Side
from evenhand.errors import UserError

_TEXT = pa.string()
_MESSAGES = pa.list_(pa.struct([("role", _TEXT), ("content", _TEXT)]))
SCHEMA = pa.schema(
    [
        ("prompt", _MESSAGES),
        ("chosen", _MESSAGES),
        ("rejected", _MESSAGES),
        ("score_chosen", pa.float64()),
        ("score_rejected", pa.float64()),
        ("margin", pa.float64()),
        ("topic", _TEXT),
        ("topic_rejected", _TEXT),
        ("bias_type", _TEXT),
        ("role_chosen", _TEXT),
        ("role_rejected", _TEXT),
        ("round_chosen", pa.int64()),
        ("round_rejected", pa.int64()),
        ("referee", _TEXT),
        ("strategy", _TEXT),
        ("source", _TEXT),
        ("prompts", _TEXT),
        ("run", _TEXT),
    ]
)
REPORT_FILE = "pairs.json"
_BATCH = 4_096  # rows turned into columns at a time


def require_new(folder: Path) -> None:
    """Before anything is read: an old data set is never mixed with a new one."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already; name another folder with --out")


def cleared(folder: Path) -> Path:
    """Where a folder is made before it gets its name. What a killed process left there goes; of a
    link the link itself, and nothing is written where it leads."""
    part = folder.with_name(f".{folder.name}.part")
    if part.is_symlink():
        part.unlink()
    shutil.rmtree(part, ignore_errors=True)
    return part


def write(
    folder: Path, pairs: Mapping[Side, Sequence[Pair]], report: PairsReport, license: str
) -> None:
    """All of it or nothing: the folder has its name when its last file is written."""
    require_new(folder)
    part = cleared(folder)
    files: dict[str, list[Side]] = defaultdict(list)
    for side in SIDES:
        for bias_type, group in _by_type(pairs.get(side, ())).items():
            _write_file(part / bias_type / f"{side}-00000.parquet", group)
            files[bias_type].append(side)
    (part / REPORT_FILE).write_bytes(orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2))
    (part / "README.md").write_text(card(dict(sorted(files.items())), report, license), "utf-8")
    if folder.is_dir():
        folder.rmdir()
    os.replace(part, folder)


def _by_type(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    found: defaultdict[str, list[Pair]] = defaultdict(list)
    for one in pairs:
        found[one.bias_type].append(one)
    return found


def _write_file(path: Path, pairs: Sequence[Pair]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as file:
        rows = iter(pairs)
        while batch := [one.row() for one in islice(rows, _BATCH)]:
            file.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))


def trained_topics(folder: Path) -> set[str]:
    """The topics of the training side: leave their items out of any test of the trained model."""
    files = sorted(folder.glob("*/train-*.parquet"))
    if not files:
        raise UserError(f"{folder} is not a folder of pairs: it has no */train-*.parquet")
    return {topic for file in files for topic in _topics(file)}


def _topics(file: Path) -> Iterator[str]:
    for name in ("topic", "topic_rejected"):
        yield from pq.read_table(file, columns=[name]).column(name).unique().to_pylist()
