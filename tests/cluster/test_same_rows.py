"""The same plan gives the same rows, whoever runs it."""

from dataclasses import replace
from pathlib import Path

import pytest

from crash.checker import check_whole, committed, said
from evenhand.store import RunReader

from .conftest import Driver, write_items
from .driver import Job
from .nodes import Nodes

ITEMS = 700


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The run of the local runner."""
    folder = tmp_path_factory.mktemp("local")
    job = Job(out=str(folder / "run"), items=write_items(folder / "items.jsonl", ITEMS))
    Driver(job, folder / "log").finish()
    return job


@pytest.mark.parametrize("actors", [1, 2, 4])
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
