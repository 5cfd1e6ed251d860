"""What this version cannot read, it refuses by name."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.core.errors import CorruptRun, UnknownFormat, UserError
from evenhand.runs.runners import Progress, StopSignal, run
from evenhand.runs.store import RunReader
from tests.errors import assert_names, raises_naming

from . import worker
from .checker import visible
from .conftest import Runner, Unbroken
from .worker import Job


@pytest.fixture
def copy(unbroken: Unbroken, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    shutil.copytree(unbroken.job.out, out)
    return out


@pytest.mark.parametrize("other", [1, 3])
def test_a_run_of_an_earlier_or_a_later_format_is_refused_by_reader_and_runner(
    other: int, copy: Path, job: Job
) -> None:
    record = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**record, "format": other}))
    with raises_naming(UnknownFormat, f"format {other}", "run.json"):
        RunReader(copy)
    assert f"format {other}" in Runner(job).refused("UnknownFormat")


@pytest.mark.parametrize("slot", [0, 2])
def test_a_gap_in_the_ledger_is_a_corrupt_run_for_reader_and_runner(
    slot: int, copy: Path, job: Job
) -> None:
    visible(copy / "ledger")[slot].unlink()
    with raises_naming(CorruptRun, "ledger entry", slot):
        RunReader(copy).verify()
    with raises_naming(CorruptRun, "ledger entry", slot):
        RunReader(copy).results()
    assert_names(Runner(job).refused("CorruptRun"), "ledger entry", slot)


def test_a_folder_that_is_no_run_is_called_so(tmp_path: Path) -> None:
    with raises_naming(UserError, "run.json", tmp_path):
        RunReader(tmp_path)


def test_a_run_of_another_plan_is_not_resumed_and_the_folder_is_let_go_again(
    copy: Path, job: Job
) -> None:
    """All in one process, as in a notebook where the first attempt was a slip."""

    async def attempt(calls: int) -> Progress:
        progress, planned = Progress(), worker.plan(replace(job, calls=calls))
        try:
            await run(planned, copy, progress=progress, stop=StopSignal())
        finally:
            await planned.cast.close()
        return progress

    with raises_naming(UserError, job.calls, 7, "--out"):
        asyncio.run(attempt(7))
    assert asyncio.run(attempt(job.calls)).resumed == job.items
