"""A folder of pairs in the layout that Hugging Face's `datasets` loads: a folder for each bias type
with a file for each side, and a data card that names them as configurations.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from evenhand.core.errors import UserError
from evenhand.core.package_data import render
from evenhand.training.debates.pairs import PairsReport, PreferencePair
from evenhand.training.debates.splits import SIDES, Side

T = TypeVar("T")
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
        ("abstention", _TEXT),
        ("prompts", _TEXT),
        ("run", _TEXT),
    ]
)
# All low statements that are not held out, in a pair or not: what the paper fine-tunes on. They
# are next to the folders of pairs, for readers of all files in those.
LOW = "low"
_LOW_SCHEMA = pa.schema(
    [
        SCHEMA.field(name)
        for name in (
            *("prompt", "chosen", "score_chosen", "topic", "bias_type"),
            *("role_chosen", "round_chosen", "referee", "prompts", "run"),
        )
    ]
)
REPORT_FILE = "pairs.json"
_BATCH = 4_096  # rows turned into columns at a time


def require_new(folder: Path) -> None:
    """Before anything is read: an old data set is never mixed with a new one."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} already exists. Choose another folder with --out.")


@contextmanager
def made(folder: Path) -> Iterator[Path]:
    """A place to make a folder at, which gets its name when all is written. What a killed process
    left there goes; of a link the link itself, and nothing is written where it leads."""
    require_new(folder)
    part = folder.with_name(f".{folder.name}.part")
    if part.is_symlink():
        part.unlink()
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    if folder.is_dir():
        folder.rmdir()
    os.replace(part, folder)


def write(
    folder: Path,
    pairs: Mapping[Side, Sequence[PreferencePair]],
    report: PairsReport,
    license: str,
    low: Sequence[dict[str, Any]] = (),
) -> None:
    """Write a folder of pairs, all of it or nothing.

    The folder gets its name when its last file is written.

    Args:
        folder: The folder to make.
        pairs: The pairs of each split.
        report: What is known of the pairs.
        license: The license in the dataset card.
        low: Rows of statements with low scores, for training on all of them.
    """
    files: dict[str, list[Side]] = defaultdict(list)
    with made(folder) as part:
        for side in SIDES:
            groups = _by_type(pairs.get(side, ()), lambda pair: pair.bias_type)
            for bias_type, group in groups.items():
                rows = (pair.row() for pair in group)
                _write_file(part / bias_type / f"{side}-00000.parquet", rows, SCHEMA)
                files[bias_type].append(side)
        for bias_type, alone in _by_type(low, lambda row: str(row["bias_type"])).items():
            _write_file(part / f"{LOW}-{bias_type}.parquet", iter(alone), _LOW_SCHEMA)
        (part / REPORT_FILE).write_bytes(orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2))
        (part / "README.md").write_text(card(dict(sorted(files.items())), report, license), "utf-8")


def _by_type(rows: Sequence[T], bias_type: Callable[[T], str]) -> dict[str, list[T]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for row in rows:
        groups[bias_type(row)].append(row)
    return groups


def _write_file(path: Path, rows: Iterator[dict[str, Any]], schema: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        while batch := list(islice(rows, _BATCH)):
            file.write_table(pa.Table.from_pylist(batch, schema=schema))


def trained_topics(folder: Path) -> set[str]:
    """The topics of the training side, low statements without a pair included: leave their items
    out of any test of the trained model."""
    files = sorted(folder.glob("*/train-*.parquet"))
    if not files:
        raise UserError(
            f"{folder} is not a folder of pairs, because it has no */train-*.parquet. Create pairs "
            "with `evenhand train pairs`."
        )
    low = sorted(folder.glob(f"{LOW}-*.parquet"))
    return {
        *(topic for file in files for topic in _topics(file, ("topic", "topic_rejected"))),
        *(topic for file in low for topic in _topics(file, ("topic",))),
    }


def _topics(file: Path, columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        yield from pq.read_table(file, columns=[name]).column(name).unique().to_pylist()


UNKNOWN_LICENSE = "unknown"


def card(types: Mapping[str, Sequence[Side]], report: PairsReport, license: str) -> str:
    head = yaml.safe_dump(_head(types, report, license), sort_keys=False, allow_unicode=True)
    pairs = report.pairs
    return render(
        __package__,
        "card.md",
        head=head,
        origin=report.origin,
        pairs=pairs,
        names=sorted({*pairs["train"], *pairs["test"]}),
        topics=report.topics,
        shortcuts=report.shortcuts,
        license=license,
        unknown_license=UNKNOWN_LICENSE,
        first=next(iter(types)),
    )


def _head(types: Mapping[str, Sequence[Side]], report: PairsReport, license: str) -> dict[str, Any]:
    every: dict[Side, list[str]] = {}
    for name, present in types.items():
        for side in present:
            every.setdefault(side, []).append(_file(name, side))
    configs = [{"config_name": "default", "data_files": _splits(every)}]
    for name, present in types.items():
        files = {side: [_file(name, side)] for side in present}
        configs.append({"config_name": name, "data_files": _splits(files)})
    return {
        "license": license,
        "pretty_name": "Pairs for less bias",
        "tags": ["preference", "reward-model", "bias", report.origin.source],
        "configs": configs,
    }


def _splits(files: Mapping[Side, list[str]]) -> list[dict[str, Any]]:
    return [{"split": side, "path": paths} for side, paths in files.items()]


def _file(bias_type: str, side: Side) -> str:
    return f"{bias_type}/{side}-00000.parquet"
