"""A report and a comparison over ten million rows: how much memory and time do they take?

Two made-up BBQ runs are written as ordinary run folders (results, turns, ledger), then reported and
compared in a process of their own, whose largest resident memory is read. On a sample of the same
rows the streamed findings are held against those from rows that are all in memory.

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
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.findings.comparison import compare
from evenhand.findings.report import report
from evenhand.instruments import instrument_named
from evenhand.store import RunReader, ledger, tables
from evenhand.store.folder import open_folder
from evenhand.store.run_record import RunRecord, now, versions

PART = 4_096  # rows, as the kernel writes them
TEMPLATES, CATEGORIES = 343, 11


def write_run(folder: Path, rows: int, *, seed: int, biased: float) -> None:
    """A run whose answers are drawn at random, the stereotyped one with this probability."""
    place = open_folder(folder)
    place.create("run.json", _record(rows).to_bytes())
    log = ledger.LedgerWriter(place, 0, "bench")
    rng = np.random.default_rng(seed)
    for number, start in enumerate(range(0, rows, PART)):
        size = min(PART, rows - start)
        table = _rows(start, size, rng, biased)
        files = []
        for kind, made in (("results", table), ("turns", _turns(start, size))):
            sink = io.BytesIO()
            pq.write_table(made, sink, compression="zstd", compression_level=1)
            data, name = sink.getvalue(), f"{kind}/{number:08}.parquet"
            place.create(name, data)
            sha256 = hashlib.sha256(data).hexdigest()
            files.append(ledger.File(name=name, sha256=sha256, bytes=len(data), rows=size))
        log.commit(
            ledger.Part(
                results=files[0],
                turns=files[1],
                positions=((start, start + size),),
                answered=size,
                failed={},
                changed=0,
                calls=size,
                prompt_tokens=100 * size,
                completion_tokens=size,
                tokens_unknown=0,
            )
        )


def _record(rows: int) -> RunRecord:
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
    template = position // 4 % TEMPLATES
    ambiguous = position % 2 == 0
    gold = np.where(
        ambiguous, 0, 1 + position // 2 % 2
    )  # option 0 is the unknown one, 1 the biased
    other = (1 - biased) / 2
    choice = rng.choice(3, size=size, p=[other, biased, other])
    failed = rng.random(size) < 0.01
    words = {
        "category": pl.Series([f"category {t % CATEGORIES}" for t in template]),
        "template": pl.Series([f"template {t}" for t in template]),
        "condition": pl.Series(np.where(ambiguous, "ambig", "disambig")),
        "names": pl.Series(["0"] * size),
        "masked": pl.Series(["0"] * size),
        "gold": pl.Series(gold).cast(pl.String),
        "unknown": pl.Series(["0"] * size),
        "biased": pl.Series(["1"] * size),
    }
    tags = pl.concat_list(pl.struct(name=pl.lit(name), value=pl.col(name)) for name in words).alias(
        "tags"
    )
    frame = pl.DataFrame(words).with_columns(
        tags,
        position=position,
        item_id=pl.Series(position).cast(pl.String),
        status=pl.Series(np.where(failed, "failed", "answered")),
        reason=pl.Series(failed).replace_strict({True: "model_busy", False: None}),
        choice=pl.when(pl.Series(~failed)).then(pl.Series(choice)),
        calls=pl.lit(1, pl.Int64),
        prompt_tokens=pl.lit(100, pl.Int64),
        completion_tokens=pl.lit(1, pl.Int64),
    )  # fmt: skip
    there = frame.to_arrow()
    columns = [
        there.column(field.name).cast(field.type)
        if field.name in there.column_names
        else pa.nulls(size, field.type)
        for field in tables.RESULTS
    ]
    return pa.table(columns, schema=tables.RESULTS)


def _turns(start: int, size: int) -> pa.Table:
    known = {
        "position": pa.array(np.arange(start, start + size), pa.int64()),
        "seconds": pa.array(np.full(size, 0.5)),
    }
    columns = [known.get(field.name, pa.nulls(size, field.type)) for field in tables.TURNS]
    return pa.table(columns, schema=tables.TURNS)


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
