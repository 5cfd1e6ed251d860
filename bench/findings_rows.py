"""A report and a comparison over ten million rows: how much memory and time do they take?

Two made-up BBQ runs are written as ordinary run folders (results, turns, ledger), then reported and
compared in a process of their own, whose largest resident memory is read. That the numbers equal
those from rows that are all in memory is held by tests/findings/test_streaming.py.

    python bench/findings_rows.py --rows 10000000
"""

import argparse
import hashlib
import io
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments import instrument_named
from evenhand.runs.store import RunReader, ledger, tables
from evenhand.runs.store.folder import Folder, open_folder
from evenhand.runs.store.run_record import RunRecord, now, versions

PART = 4_096  # rows, as the kernel writes them
TEMPLATES, CATEGORIES = 343, 11
PERIOD = 4 * TEMPLATES  # items, after which their tags are the same again


def write_run(
    folder: Path, rows: int, *, seed: int, biased: float, part: int = PART, shuffled: bool = False
) -> None:
    """A run whose answers are drawn at random, the stereotyped one with this probability. Parts of
    a run that is shuffled were committed in a random order, as those of a cluster are."""
    place = open_folder(folder)
    place.create("run.json", record_of(rows).to_bytes())
    log = ledger.LedgerWriter(place, 0, "bench")
    rng = np.random.default_rng(seed)
    starts = np.arange(0, rows, part)
    for number, start in enumerate((rng.permutation(starts) if shuffled else starts).tolist()):
        size = min(part, rows - start)
        results = _rows(start, size, rng, biased)
        write_part(place, log, number, results, _turns(start, size))


def write_part(
    place: Folder, log: ledger.LedgerWriter, number: int, results: pa.Table, turns: pa.Table
) -> None:
    """One part of a run, whose positions follow each other."""
    files = []
    for kind, made in (("results", results), ("turns", turns)):
        sink = io.BytesIO()
        pq.write_table(made, sink, compression="zstd", compression_level=1)
        data, name = sink.getvalue(), f"{kind}/part-{number:08}.parquet"
        place.create(name, data)
        sha256 = hashlib.sha256(data).hexdigest()
        files.append(ledger.PartFile(name=name, sha256=sha256, bytes=len(data), rows=len(made)))
    start, size = results["position"][0].as_py(), len(results)
    reasons = Counter(results["reason"].drop_null().to_pylist())
    log.commit(
        ledger.CommittedPart(
            results=files[0],
            turns=files[1],
            positions=((start, start + size),),
            answered=size - reasons.total(),
            failed=dict(sorted(reasons.items())),
            changed=0,
            calls=size,
            prompt_tokens=100 * size,
            completion_tokens=size,
            tokens_unknown=0,
        )
    )


def record_of(rows: int) -> RunRecord:
    source = {"kind": "benchmark", "benchmark": "bbq", "version": "1-A", "revision": "made up",
              "sampling": {"preset": "made up", "seed": 0}, "items": rows,
              "sha256": "0" * 64}  # fmt: skip
    return RunRecord(
        method={"name": "default", "settings": {}},
        prompts={},
        cast={"default": {"kind": "scripted", "model": "made up"}},
        source=source,
        limits={},
        seed=None,
        created=now(),
        versions=versions(),
    )


def _rows(start: int, size: int, rng: np.random.Generator, biased: float) -> pa.Table:
    position = np.arange(start, start + size)
    other = (1 - biased) / 2
    choice = rng.choice(3, size=size, p=[other, biased, other])
    failed = rng.random(size) < 0.01
    known = {
        "position": position,
        "item_id": pa.array(position).cast(pa.string()),
        "status": np.where(failed, "failed", "answered"),
        "reason": pa.array(np.full(size, "model_busy"), mask=~failed),
        "choice": pa.array(choice, mask=failed),
        "calls": np.ones(size, int),
        "prompt_tokens": np.full(size, 100),
        "completion_tokens": np.ones(size, int),
        "tags": _tags().take(pa.array(position % PERIOD)),
    }
    return table_of(known, size, tables.RESULTS)


@cache
def _tags() -> pa.Array:
    """The tags of the first items; those of later ones are the same again."""
    kind = tables.RESULTS.field("tags").type
    made = [_tags_of(position) for position in range(PERIOD)]
    return pa.array([[{"name": n, "value": v} for n, v in tags.items()] for tags in made], kind)


def _tags_of(position: int) -> dict[str, str]:
    """Option 0 is the unknown one and option 1 the stereotyped one."""
    template, unclear = position // 4, position % 2 == 0
    return {
        "category": f"category {template % CATEGORIES}",
        "template": f"template {template}",
        "condition": "ambig" if unclear else "disambig",
        "names": "0",
        "masked": "0",
        "gold": "0" if unclear else str(1 + position // 2 % 2),
        "unknown": "0",
        "biased": "1",
    }


def table_of(known: dict[str, Any], size: int, schema: pa.Schema) -> pa.Table:
    """The columns that are known, and nulls in all others."""
    columns = [
        pa.array(known[field.name]).cast(field.type)
        if field.name in known
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _turns(start: int, size: int) -> pa.Table:
    seconds = 0.3 + 0.001 * (np.arange(start, start + size) % 997)
    known = {"position": np.arange(start, start + size), "seconds": seconds}
    return table_of(known, size, tables.TURNS)


def found_in(folder: Path) -> dict[str, float]:
    """The report and the comparison, their time, and the most memory that the process had."""
    before, after = (RunReader(folder / name) for name in ("before", "after"))
    bbq = instrument_named("bbq")
    began = time.perf_counter()
    one = report(bbq, before)
    reported = time.perf_counter()
    two = compare(bbq, before, after)
    compared = time.perf_counter()
    change = two["s_amb"]
    assert one["s_amb"].value is not None
    assert change.difference is not None
    return {
        "s_amb": one["s_amb"].value,
        "change": change.difference,
        "p": change.p or 0.0,
        "report_seconds": reported - began,
        "compare_seconds": compared - reported,
        "most_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where the runs are; made if it is empty")
    parser.add_argument("--read", action="store_true", help="only read the runs that are there")
    given = parser.parse_args()
    if given.read:
        print(json.dumps(found_in(given.folder)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        for seed, (name, biased) in enumerate((("before", 0.5), ("after", 0.4))):
            if not (folder / name / "run.json").exists():
                write_run(folder / name, given.rows, seed=seed, biased=biased)
        command = [sys.executable, __file__, "--read", "--folder", str(folder)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(f"RESULT rows={given.rows} {said.strip()}")


if __name__ == "__main__":
    main()
