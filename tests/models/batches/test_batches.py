"""A run by batches equals the direct run, whatever the provider does."""

import asyncio
import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evenhand.core.errors import BatchFailed, UserError
from evenhand.models.batch import BatchForm
from evenhand.runs.store import RunReader
from tests.errors import raises_naming

from . import provider, worker
from .conftest import Ran, Rows, paid, ran
from .provider import KEY, Faults, Provider
from .worker import Job

FORMS: tuple[BatchForm, ...] = ("openai", "anthropic")
RunIt = Callable[[BatchForm, Faults], Ran]


@pytest.fixture
def by_batches(tmp_path: Path) -> RunIt:
    def run_it(form: BatchForm, faults: Faults) -> Ran:
        job = functools.partial(_job, form)
        return asyncio.run(ran(tmp_path, faults, job))

    return run_it


def _job(form: BatchForm, out: str, url: str) -> Job:
    return Job(out=out, url=url, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_takes_one_batch_a_round_and_equals_the_direct_one(
    form: BatchForm, by_batches: RunIt, direct: Rows
) -> None:
    found = by_batches(form, Faults())
    assert found.rows.equals(direct)
    assert set(found.paid.values()) == {1}
    sizes = [len(batch.lines) for batch in found.provider.batches.values()]
    assert sizes == sorted(sizes[:2]) + sorted(sizes[2:], reverse=True)
    assert len(sizes) <= 6  # calls an item, of `limits`: no item has more rounds
    assert {name for name in found.rows.batches if name} == set(found.provider.batches)


ALL_OF_IT = Faults(
    lines_failed=0.1, missing=0.1, twice=True, shuffled=True, http_500=0.2, expired=1,
    cut_creations=1,
)  # fmt: skip
BAD: dict[str, tuple[BatchForm, Faults]] = {
    "late": ("anthropic", Faults(late=0.4)),
    "lines that are limited": ("openai", Faults(lines_failed=0.3, fail_status=429)),
    "expired": ("openai", Faults(expired=2)),
    "canceled": ("anthropic", Faults(canceled=2)),
    "results missing": ("anthropic", Faults(missing=0.3)),
    "creations whose answer is cut": ("openai", Faults(cut_creations=2)),
    "a list that is behind": ("anthropic", Faults(cut_creations=2, hidden=0.02)),
    "too much waiting": ("openai", Faults(most_waiting=20)),
    "files that come late": ("openai", Faults(no_files_for=3)),
    "schemas refused, by openai": ("openai", Faults(refuses_schema=True)),
    "schemas refused, by anthropic": ("anthropic", Faults(refuses_schema=True)),
    "all of it, by openai": ("openai", ALL_OF_IT),
    "all of it, by anthropic": ("anthropic", ALL_OF_IT),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_provider_that_misbehaves_costs_no_row_and_nothing_twice(
    fault: str, by_batches: RunIt, direct: Rows
) -> None:
    found = by_batches(*BAD[fault])
    assert found.rows.equals(direct)
    assert set(found.paid.values()) == {1}


@pytest.mark.parametrize("form", FORMS)
def test_what_no_batch_answers_is_said_and_costs_nothing(
    form: BatchForm, by_batches: RunIt
) -> None:
    found = by_batches(form, Faults(expired=1000, done=0.1))
    failed = found.rows.results.filter(found.rows.results["reason"] == "model_busy")
    assert len(failed) > 10
    assert all("not answered in 3 batches" in message for message in failed["message"])
    assert set(found.paid.values()) == {1}


def test_a_field_that_lines_are_refused_for_is_left_out_of_the_next_batch(
    by_batches: RunIt, direct: Rows, tmp_path: Path
) -> None:
    found = by_batches("anthropic", Faults(refuses="temperature"))
    assert found.rows.equals(direct)
    assert set(found.paid.values()) == {1}
    sent = [any("temperature" in line["params"] for line in batch.lines)
            for batch in found.provider.batches.values()]  # fmt: skip
    assert sent.count(True) == 1
    assert len(sent) > sent.index(True) + 1
    adapted = RunReader(str(tmp_path / "run")).totals().adapted["logged"]
    assert 0 < adapted["temperature"] < adapted["seed"]  # drafts ask for none


def test_a_param_of_the_user_that_lines_are_refused_for_ends_the_items(tmp_path: Path) -> None:
    def job(out: str, url: str) -> Job:
        return Job(out=out, url=url, form="anthropic", items=10, params=(("top_k", 5),))

    found = asyncio.run(ran(tmp_path, Faults(refuses="top_k"), job))
    assert set(found.rows.results["reason"]) == {"model_refused"}
    assert all("--param top_k" in message for message in found.rows.results["message"])
    assert (len(found.provider.batches), found.paid.total()) == (1, 0)


def test_a_batch_that_is_refused_whole_ends_the_run_with_the_reason(by_batches: RunIt) -> None:
    with raises_naming(UserError, "no such model"):
        by_batches("openai", Faults(refuses_all="no such model for batches"))


def test_a_server_without_batches_is_named(by_batches: RunIt) -> None:
    with raises_naming(UserError, "HTTP 404"):
        by_batches("openai", Faults(no_batches=True))


def test_a_provider_that_is_gone_ends_the_run_and_a_later_one_goes_on(
    tmp_path: Path, direct: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def both() -> None:
        server = Provider(str(tmp_path / "paid"), Faults(late=0.2))
        runner, url = await provider.start(server)
        port = int(url.split(":")[2].partition("/")[0])
        job = Job(out=str(tmp_path / "run"), url=url)
        running = asyncio.create_task(worker.work(job))
        while not server.batches:
            await asyncio.sleep(0.005)
        await runner.cleanup()
        with raises_naming(BatchFailed, "tried"):
            await running
        again = web.AppRunner(server.app(), access_log=None)
        await again.setup()
        await web.TCPSite(again, "127.0.0.1", port).start()
        await worker.work(job)
        await again.cleanup()
        assert Rows.of(job.out, url).equals(direct)

    monkeypatch.setattr(worker, "QUICK", replace(worker.QUICK, patience=0.3))
    asyncio.run(both())
    assert set(paid(tmp_path / "paid").values()) == {1}


@pytest.mark.parametrize("form", FORMS)
def test_the_key_is_in_no_file(form: BatchForm, tmp_path: Path) -> None:
    class Telling(Provider):
        def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            status, reply = super().reply(body)
            for choice in reply.get("choices", ()):
                choice["message"]["content"] += f" {KEY}"
            return status, reply

        def message(self, params: dict[str, Any]) -> dict[str, Any]:
            result = super().message(params)
            for block in result.get("message", {}).get("content", ()):
                block[block["type"]] += f" {KEY}"
            return result

    async def told() -> None:
        runner, url = await provider.start(Telling(str(tmp_path / "paid")))
        await worker.work(Job(out=str(tmp_path / "run"), url=url, form=form, items=10))
        await runner.cleanup()

    asyncio.run(told())
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert any("batches" in path.parts for path in files)
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_the_body_in_a_batch_is_that_of_the_direct_wire(tmp_path: Path) -> None:
    def bodies(batch: bool) -> set[str]:
        folder = tmp_path / str(batch)
        folder.mkdir()

        def job(out: str, url: str) -> Job:
            return Job(out=out, url=url, batch=batch)

        found = asyncio.run(ran(folder, Faults(), job))
        return {json.dumps(body, sort_keys=True) for body in found.provider.bodies}

    assert bodies(True) == bodies(False)
