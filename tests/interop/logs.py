"""Logs as other tools write them, made of BBQ's own records."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

_ENDS = {"Age": range(8), "Religion": range(4)}  # the first records of these categories


def records_of(records: pl.DataFrame) -> list[dict[str, Any]]:
    """The first two blocks of a category and the first of another."""
    wanted = [
        (pl.col("category") == name) & pl.col("example_id").is_in([*ids])
        for name, ids in _ENDS.items()
    ]
    return records.filter(pl.any_horizontal(wanted)).to_dicts()


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    """Write a ZIP archive whose members are compressed by zstd, byte by byte: Python's own module
    cannot before 3.14."""
    body, directory = b"", b""
    for name, data in members.items():
        packed = pa.compress(data, codec="zstd", asbytes=True)
        sizes = struct.pack("<III", zlib.crc32(data), len(packed), len(data))
        common = struct.pack("<HHHHH", 63, 0, 93, 0, 33) + sizes + struct.pack("<HH", len(name), 0)
        directory += (
            b"PK\x01\x02" + struct.pack("<H", 63) + common + struct.pack("<HHHI", 0, 0, 0, 0)
            + struct.pack("<I", len(body)) + name.encode()
        )  # fmt: skip
        body += b"PK\x03\x04" + common + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)
    return path


def sample(row: dict[str, Any], letter: str | None, **more: Any) -> dict[str, Any]:
    """A sample of inspect_evals' BBQ, as the list of a log has it."""
    scores = {"choice": {"value": "I", "answer": letter}}
    metadata = {"source_id": row["example_id"], "category": row["category"]}
    return {
        "id": f"{row['category']}_{row['example_id']:05d}", "epoch": 1, "choices": row["options"],
        "metadata": metadata, "scores": {} if letter is None else scores,
    } | more  # fmt: skip


def inspect_log(path: Path, samples: Any, **header: Any) -> Path:
    asked = sum(one["epoch"] == 1 for one in samples) if isinstance(samples, list) else 0
    said = {
        "version": 2, "status": "success",
        "eval": {"task": "inspect_evals/bbq", "model": "openai/pretended", "created": "2026-11-17",
                 "packages": {"inspect_ai": "0.3.285"}, "dataset": {"samples": asked}},
    } | header  # fmt: skip
    members = {"header.json": said, "summaries.json": samples}
    return zipped(path, {name: json.dumps(one).encode() for name, one in members.items()})


def lm_eval_line(row: dict[str, Any], *likely: float) -> str:
    """A line of lm-evaluation-harness' BBQ with a log-likelihood for each of the three options and
    for "Undetermined", another word for the unknown one."""
    offered = [*row["options"], "Undetermined"]
    info = {
        f"ans{n}": [text, "unknown" if n == row["unknown"] else "somebody"]
        for n, text in enumerate(row["options"])
    }
    doc = {"category": row["category"], "example_id": row["example_id"], "answer_info": info}
    doc |= {f"ans{n}": text for n, text in enumerate(row["options"])}
    said = {
        "doc_id": 0, "doc": doc, "target": 0,
        "arguments": {f"gen_args_{n}": {"arg_0": "…\nA:", "arg_1": f" {text}"}
                      for n, text in enumerate(offered)},
        "resps": [[[str(one), "False"]] for one in likely],
        "filtered_resps": [[str(one), "False"] for one in likely],
    }  # fmt: skip
    return json.dumps(said) + "\n"
