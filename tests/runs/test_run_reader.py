"""A run folder that a stranger wrote: checksums that fit say nothing about what is in a part."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from evenhand.core.errors import CorruptRun
from evenhand.runs.store import RunReader, ledger
from tests.errors import raises_naming
from tests.hostile.small_runs import ran

READING: dict[str, Callable[[RunReader], object]] = {
    "results": lambda run: run.results().collect(),
    "results_at": lambda run: run.results_at([1]).collect(),
    "result_batches": lambda run: list(run.result_batches(["position", "text"])),
    "picked": lambda run: run.picked(["position"], lambda part: part),
    "turns": lambda run: run.turns().collect(),
    "seconds_by_item": lambda run: list(run.seconds_by_item()),
    "turn_batches": lambda run: [list(batch) for batch in run.turn_batches()],
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    ran(tmp_path / "run")
    return tmp_path / "run"


def forge(run: Path, change: Callable[[dict[str, Any]], None], slot: int = -1) -> None:
    """Change an entry of the ledger, its checksum with it."""
    entry = sorted((run / "ledger").iterdir())[slot]
    body = orjson.loads(entry.read_bytes())
    body.pop("check")
    change(body)
    body["check"] = ledger._check(body)
    (run / f"ledger/{body['slot']:08d}.json").write_bytes(orjson.dumps(body))


def swap(run: Path, kind: str, data: bytes) -> None:
    """Put other bytes into the place of a part, with a checksum that fits."""
    part = next((run / kind).iterdir())
    part.write_bytes(data)
    fits = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    forge(run, lambda body: body["part"][kind].update(fits))


@pytest.mark.parametrize("way", READING)
def test_a_part_that_is_no_table_is_a_corrupt_run_by_every_way_of_reading(
    run: Path, way: str
) -> None:
    for kind in ("results", "turns"):
        swap(run, kind, b"hello")
    with raises_naming(CorruptRun, ".parquet", "table"):
        READING[way](RunReader(run))


def test_a_part_with_a_column_of_another_kind_is_a_corrupt_run(run: Path) -> None:
    rows = pl.read_parquet(next((run / "results").iterdir()))
    other = io.BytesIO()
    rows.with_columns(pl.col("position").cast(pl.String)).write_parquet(other)
    swap(run, "results", other.getvalue())
    with raises_naming(CorruptRun, ".parquet", "table"):
        list(RunReader(run).result_batches(["position"]))


def test_a_panic_of_polars_is_a_corrupt_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which bytes make it panic changes with its version, so it is made to."""

    def panics(*_: object, **__: object) -> pl.LazyFrame:
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(pl, "scan_parquet", panics)
    monkeypatch.setattr(pl, "read_parquet", panics)
    with raises_naming(CorruptRun, ".parquet", "table"):
        list(RunReader(run).result_batches(["position"]))


def test_a_ledger_that_names_a_part_twice_is_a_corrupt_run(run: Path) -> None:
    forge(run, lambda body: body.update(slot=body["slot"] + 1))
    with raises_naming(CorruptRun, f"results/{next((run / 'results').iterdir()).name}", "twice"):
        RunReader(run).totals()


def test_a_ledger_that_names_an_item_twice_is_a_corrupt_run(run: Path) -> None:
    def copied(body: dict[str, Any]) -> None:
        body["slot"] += 1
        for kind in ("results", "turns"):
            part = next((run / kind).iterdir())
            (run / kind / "part-copy.parquet").write_bytes(part.read_bytes())
            body["part"][kind]["name"] = f"{kind}/part-copy.parquet"

    forge(run, copied)
    with raises_naming(CorruptRun, "ledger", "item at 0", "twice"):
        list(RunReader(run).result_batches(["position"]))
