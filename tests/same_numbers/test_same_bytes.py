"""The same run gives the same bytes: read again, and by another process that hashes otherwise and
reads with another number of threads."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl

from evenhand.findings.report import report
from evenhand.instruments import instrument_of
from evenhand.runs.store import RunReader
from evenhand.views.files import write_report

from .digests import KEPT, digests


def test_two_processes_write_the_same_bytes() -> None:
    threads = "1" if pl.thread_pool_size() >= 4 else "4"
    others = {"PYTHONHASHSEED": "1", "POLARS_MAX_THREADS": threads}
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    told = subprocess.run(
        [sys.executable, "-m", "tests.same_numbers.digests"],
        env=os.environ | others | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert dict(line.split("\t") for line in told.splitlines()) == digests()


def test_a_run_that_is_reported_twice_has_the_same_report_json(tmp_path: Path) -> None:
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        run = RunReader(KEPT / "squad/default")
        write_report(report(instrument_of(run), run), str(tmp_path / name))
        written.append((tmp_path / name / "report.json").read_bytes())
    assert written[0] == written[1]
