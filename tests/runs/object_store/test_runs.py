"""A run in an object store is the run that a local folder would hold, whatever happens on the way.

R1 with one difference: lines reach the store once a second, so that a kill costs the calls of the
last second beside those in flight.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

from evenhand.core.errors import CorruptRun, UserError
from evenhand.findings.summary import summary
from evenhand.runs.runners import Progress, StopSignal, replay_of, run
from evenhand.runs.store import RunReader, RunTape, object_folder, tables
from evenhand.runs.store.folder import open_folder
from evenhand.runs.store.journal import Journal
from evenhand.runs.store.object_folder import FLUSH_SECONDS, ObjectFolder
from evenhand.views.files import to_json
from tests.errors import raises_naming
from tests.runs.crash import worker
from tests.runs.crash.checker import Bill, check_whole, key_of, recorded, said, started
from tests.runs.crash.conftest import Runner, until
from tests.runs.crash.worker import Job

from .conftest import BUCKET, Unbroken, copied, objects, use_endpoint
from .flaky_proxy import FlakyProxy

ENGINES: tuple[Literal["in-memory"], Literal["streaming"]] = ("in-memory", "streaming")
_PUT_SECONDS = 1.0  # on a machine that does other things too


def read(location: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    reader = RunReader(location)
    return reader.results().collect().to_dicts(), reader.turns().collect().to_dicts()


def test_a_run_in_the_store_holds_what_the_same_run_holds_in_a_local_folder(
    job: Job, unbroken: Unbroken, store: Any, tmp_path: Path
) -> None:
    Runner(job, script=True).finish()
    check_whole(copied(job, store, tmp_path / "copy"), job.items, unbroken.whole)
    (results, turns), (local_results, local_turns) = read(job.out), read(unbroken.job.out)
    assert results == local_results
    assert said(turns) == said(local_turns)
    reader, local = RunReader(job.out), RunReader(unbroken.job.out)
    assert reader.totals() == local.totals()
    assert reader.verify() == local.verify() == 3
    assert started(Path(job.log)) == unbroken.calls
    assert not [name for name in objects(job, store) if name.startswith(("journal", "probe"))]


def test_a_lazy_frame_of_a_run_in_the_store_takes_columns_filters_and_heads(
    finished: Job, unbroken: Unbroken
) -> None:
    remote, local = RunReader(finished.out).results(), RunReader(unbroken.job.out).results()
    asked: list[Callable[[pl.LazyFrame], pl.LazyFrame]] = [
        lambda frame: frame.select("item_id", "calls"),
        lambda frame: frame.filter(pl.col("changed")).select("text"),
        lambda frame: frame.head(50).select("position"),
        lambda frame: frame.group_by("status").len().sort("status"),
    ]
    for ask in asked:
        for engine in ENGINES:
            assert ask(remote).collect(engine=engine).equals(ask(local).collect(engine=engine))
    assert len(RunReader(finished.out)._scan("results").head(70).collect()) == 70


def test_a_run_in_the_store_is_replayed_offline_and_gets_its_report(
    finished: Job, store: Any
) -> None:
    again = f"{finished.out}-again"
    plan = replace(worker.plan(finished), cast=replay_of(finished.out))
    asyncio.run(run(plan, again, progress=Progress(), stop=StopSignal()))
    assert read(again)[0] == read(finished.out)[0]
    open_folder(finished.out).replace("report.json", to_json(summary(RunReader(finished.out))))
    assert "report.json" in objects(finished, store)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_random_moments_cost_only_calls_in_flight_and_of_the_last_flush(
    seed: int, job: Job, unbroken: Unbroken, store: Any, tmp_path: Path
) -> None:
    luck, kills = random.Random(seed), 2
    slow = replace(job, seconds=0.5, steal_lock=True, part_items=25)
    bill = Bill(Path(job.log), most=0)
    for number in range(kills):
        bill.most = killed_after(luck.uniform(0.0, 3.0), slow)
        bill.note_kill(copied(slow, store, tmp_path / f"kill-{number}"))
    Runner(replace(slow, seconds=0.004), script=True).finish()
    check_whole(copied(job, store, tmp_path / "end"), job.items, unbroken.whole)
    assert read(job.out)[0] == read(unbroken.job.out)[0]
    twice, lost = bill.check(unbroken.calls)
    print(f"seed {seed}: {bill.kills} kills, {lost} calls lost, {twice} paid twice")


def killed_after(delay: float, job: Job) -> int:
    """Kill a runner this long after its first call; gives the most calls this may lose: those in
    flight, and those begun since what must be in the store by now."""
    log = Path(job.log)
    before = started(log).total()
    runner = Runner(job, script=True)
    until(lambda: started(log).total() > before, "it did not get going")
    time.sleep(delay)
    window = started(log).total()
    time.sleep(FLUSH_SECONDS + _PUT_SECONDS)
    assert runner.killed(), "it was done before"
    in_flight = 2 * job.concurrency  # an item asks at most two side by side
    return started(log).total() - window + in_flight


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_through_a_network_that_fails_a_fifth_of_the_requests_ends_complete(
    seed: int,
    job: Job,
    unbroken: Unbroken,
    server: str,
    store: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = replace(job, part_items=5, seconds=0.05)
    with FlakyProxy(server, seed) as proxy:
        use_endpoint(proxy.url, monkeypatch)
        Runner(many, script=True).finish()
        assert RunReader(job.out).verify() == 16
        assert read(job.out)[0] == read(unbroken.job.out)[0]
    found = check_whole(copied(job, store, tmp_path / "copy"), job.items, unbroken.whole)
    assert found.tokens == [0], "one writer, and it never took itself for another"
    assert started(Path(job.log)) == unbroken.calls
    assert proxy.seen["PUT answer lost"] > 0
    print(dict(proxy.seen))


@pytest.mark.parametrize("kind", ["results/", "turns/", "ledger/", "run.json"])
@pytest.mark.parametrize("harm", ["cut short", "one bit", "empty", "gone"])
def test_a_damaged_object_is_noticed_whatever_is_asked(
    kind: str, harm: str, finished: Job, store: Any
) -> None:
    root = finished.out.removeprefix("s3://")
    name = next(name for name in objects(finished, store) if name.startswith(kind))
    path, data = f"{root}/{name}", store.cat_file(f"{root}/{name}")
    flipped = bytes([data[len(data) // 2] ^ 1])
    harmed = {
        "cut short": data[:-1],
        "one bit": data[: len(data) // 2] + flipped + data[len(data) // 2 + 1 :],
        "empty": b"",
    }
    if harm == "gone":
        store.rm_file(path)
    else:
        store.pipe_file(path, harmed[harm])
    try:
        expected = UserError if (kind, harm) == ("run.json", "gone") else CorruptRun
        for use in USES[kind]:
            with pytest.raises(expected):
                use(RunReader(finished.out))
    finally:
        store.pipe_file(path, data)


USES: dict[str, list[Any]] = {
    "results/": [RunReader.verify, lambda run: run.results().select("position").collect()],
    "turns/": [
        RunReader.verify,
        lambda run: run.turns().collect(),
        lambda run: RunTape(run).take(-1, "", 0),
    ],
    "ledger/": [RunReader.verify, RunReader.totals, RunReader.results, RunReader.turns],
    "run.json": [RunReader.verify],
}


@pytest.fixture(scope="module")
def finished(unbroken: Unbroken, server: str) -> Job:
    """One run for all that read it, and for all harms; each is mended again."""
    out = f"s3://{BUCKET}/finished"
    job = replace(unbroken.job, out=out, log=f"{unbroken.job.log}-finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server)
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        Runner(job, script=True).finish()
    return job


def test_a_place_without_a_run_is_told_apart_from_a_damaged_one() -> None:
    with raises_naming(UserError, f"s3://{BUCKET}/nothing-here", "run.json"):
        RunReader(f"s3://{BUCKET}/nothing-here")


async def test_no_recorded_call_leaves_the_store_when_a_spent_journal_is_removed(
    job: Job, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was carried over to the next journal is in the store by then, not in a buffer."""
    remove, rotate = ObjectFolder.remove, Journal.rotate
    removed: list[int] = []  # how many calls were on record before each
    monkeypatch.setattr(object_folder, "FLUSH_SECONDS", 60.0)
    monkeypatch.setattr(tables, "PART_ITEMS", 15)

    def watched(self: ObjectFolder, *names: str) -> None:
        for name in (one for one in names if one.startswith("journal/")):
            before = recorded(copied(job, store, tmp_path / f"{len(removed)}-before"), key_of)
            remove(self, name)
            after = recorded(copied(job, store, tmp_path / f"{len(removed)}-after"), key_of)
            assert not before - after, f"{name} took {(before - after).total()} calls with it"
            removed.append(before.total())
        if others := [one for one in names if not one.startswith("journal/")]:
            remove(self, *others)

    def rotate_full(self: Journal, carried: Iterable[bytes]) -> str:
        self.flush()  # so that the old one has all that is carried over from it
        return rotate(self, carried)

    monkeypatch.setattr(ObjectFolder, "remove", watched)
    monkeypatch.setattr(Journal, "rotate", rotate_full)
    planned = worker.plan(job)
    await run(planned, job.out, progress=Progress(), stop=StopSignal())
    await planned.cast.close()
    assert len(removed) >= 5
