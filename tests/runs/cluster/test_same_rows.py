"""The same plan gives the same rows, whoever runs it."""

from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.findings.cost import Spread
from evenhand.findings.report import report
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views.files import write_report
from tests.runs.crash.checker import check_whole, committed, said

from .conftest import Driver, write_items
from .driver import Job
from .nodes import Nodes

ITEMS = 560  # eight shares for each of four actors, above the smallest size


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The run of the local runner."""
    folder = tmp_path_factory.mktemp("local")
    job = Job(out=str(folder / "run"), items=write_items(folder / "items.jsonl", ITEMS))
    Driver(job, folder / "log").finish()
    return job


@pytest.mark.parametrize("actors", [1, 4])
def test_a_run_on_the_cluster_equals_the_local_one_row_for_row(
    actors: int, local: Job, nodes: Nodes, tmp_path: Path
) -> None:
    job = replace(local, out=str(tmp_path / "run"), address=nodes.address, actors=actors)
    told = Driver(job, tmp_path / "log").finish()
    assert told["done"] == ITEMS
    found = check_whole(tmp_path / "run", ITEMS, committed(Path(local.out)))
    assert said(found.turns) == said(committed(Path(local.out)).turns)
    ours, theirs = RunReader(local.out), RunReader(job.out)
    assert ours.totals() == theirs.totals()
    assert not list((tmp_path / "run" / "journal").glob("*.log"))


def report_files(job: Job) -> tuple[bytes, bytes]:
    """The report as it is written, but for where the run lies and what the clock decides."""
    found = report(Bbq(), RunReader(job.out))
    cost = replace(found.cost, seconds=Spread())
    side, verdict = replace(found.side, run=""), replace(found.verdict, next=())
    write_report(replace(found, side=side, verdict=verdict, created="", cost=cost), job.out)
    out = Path(job.out)
    return (out / "report.json").read_bytes(), (out / "report.parquet").read_bytes()


def test_a_benchmark_on_the_cluster_gives_byte_for_byte_the_local_report(
    nodes: Nodes, data_folder: Path, tmp_path: Path
) -> None:
    local = Job(out=str(tmp_path / "local" / "run"), bbq=str(data_folder), method="default")
    Driver(local, tmp_path / "local" / "log").finish()
    expected = report_files(local)
    job = replace(local, out=str(tmp_path / "run"), address=nodes.address, actors=2)
    Driver(job, tmp_path / "log").finish()
    assert report_files(job) == expected
    assert RunReader(job.out).results().collect().equals(RunReader(local.out).results().collect())
