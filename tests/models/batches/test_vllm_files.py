"""vLLM's form: requests in one file, replies in another, and a command between them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.agents import Cast
from evenhand.core.errors import UserError
from evenhand.models.batch import VllmFiles
from evenhand.runs.runners import Progress, StopSignal, run
from tests.errors import raises_naming

from . import worker
from .conftest import Process, Rows, Served, paid
from .provider import KEY, Faults
from .worker import Job

_SET = ("PATH", "VLLM_LOG", "VLLM_URL", "VLLM_KEY", "VLLM_SECONDS")
URL = "http://no.server.example"  # nothing is asked there


@pytest.fixture
def vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serving: Callable[[Faults], Served]
) -> Path:
    """A command of this name on the PATH; the log of what it answered."""
    log, bin_folder = tmp_path / "answered", tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "vllm"
    stand_in = Path(__file__).with_name("stand_in_vllm.py")
    command.write_text(f"#!{sys.executable}\n{stand_in.read_text()}")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("VLLM_LOG", str(log))
    monkeypatch.setenv("VLLM_URL", serving(Faults()).url)
    monkeypatch.setenv("VLLM_KEY", KEY)
    return log


def here() -> tuple[tuple[str, str], ...]:
    return tuple((name, os.environ[name]) for name in os.environ if name in _SET)


def test_a_run_by_files_equals_the_direct_one(vllm: Path, tmp_path: Path, direct: Rows) -> None:
    job = Job(out=str(tmp_path / "run"), url=URL, form="vllm", environment=here())
    Process(job).finish()
    assert_equal_but_for_refusals(Rows.of(job.out, URL), direct)
    assert set(paid(vllm).values()) == {1}


def assert_equal_but_for_refusals(rows: Rows, direct: Rows) -> None:
    """No address refuses here, so the words of a refusal are others."""
    assert rows.results.drop("message").equals(direct.results.drop("message"))
    assert rows.turns.drop("error_message").equals(direct.turns.drop("error_message"))


@pytest.mark.parametrize("step", ["after jsonl", "after sent.json", "before results.jsonl"])
def test_a_killed_run_takes_up_the_vllm_that_it_left_at_work(
    step: str, vllm: Path, tmp_path: Path, direct: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_SECONDS", "0.5")
    job = replace(
        Job(out=str(tmp_path / "run"), url=URL, form="vllm"), step=step, environment=here()
    )
    assert Process(job).wait() == -signal.SIGKILL
    Process(replace(job, step="")).finish()
    assert_equal_but_for_refusals(Rows.of(job.out, URL), direct)
    assert set(paid(vllm).values()) == {1}


def test_without_the_command_the_run_says_what_is_to_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    plan = worker.plan(Job(out=str(tmp_path / "run"), url=URL, form="vllm", items=3))
    progress, stop = Progress(), StopSignal()

    async def waits() -> str:
        running = asyncio.create_task(run(plan, tmp_path / "run", progress=progress, stop=stop))
        note = ""
        while not note:
            await asyncio.sleep(0.02)
            note = next((batch["note"] for batch in progress.snapshot()["batches"]), "")
        stop()
        stop()
        await running
        return note

    note = asyncio.run(waits())
    assert note.startswith("to be run: vllm run-batch -i ")
    requests = Path(note.split()[note.split().index("-i") + 1])
    first = json.loads(requests.read_text().splitlines()[0])
    assert first["url"] == "/v1/chat/completions"
    assert first["body"]["model"] == "logged"


def test_a_vllm_that_fails_ends_the_run(
    vllm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_FAILS", "1")
    plan = worker.plan(Job(out=str(tmp_path / "run"), url=URL, form="vllm", items=3))
    with raises_naming(UserError, "code 9"):
        asyncio.run(run(plan, tmp_path / "run", progress=Progress(), stop=StopSignal()))


def test_such_a_model_is_asked_in_batches_alone(tmp_path: Path) -> None:
    plan = replace(
        worker.plan(Job(out="", url=URL, form="vllm", items=3)),
        cast=Cast(VllmFiles("logged")),
        batch=None,
    )
    with raises_naming(UserError, "--batch"):
        asyncio.run(run(plan, tmp_path / "run", progress=Progress(), stop=StopSignal()))
