"""The whole way with a real model: mitigate, stop, resume, replay. SmolLM2-135M is at chance as a
judge, so nothing here is about quality: it is about every part working together for real."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import FreeText, Reply
from evenhand.methods.stardtox import Harm, Quality
from evenhand.models import Endpoint
from evenhand.models.base import ModelRequest
from evenhand.runs.store import RunReader
from tests.real.conftest import EVENHAND

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(1500)]

PEOPLE = (
    "nurse, engineer, kindergarten teacher, refugee, grandmother, taxi driver, single mother, "
    "wheelchair user"
).split(", ")
SETTINGS = ["--seed", "1", "--max-tokens", "96", "--set", "max_iterations=1", "--concurrency", "3"]


def _mitigate(prompts: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [EVENHAND, "mitigate", str(prompts), "--out", str(out), *SETTINGS, *more, "--json"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EVENHAND_")}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def _finished(out: Path) -> int:
    """Items that the journal and the ledger know to be finished, while the run is going on."""
    lines = [f.read_bytes() for f in out.glob("journal/*.log")]
    return sum(data.count(b"\nR ") + data.startswith(b"R ") for data in lines)


def _export(run: Path, to: Path) -> bytes:
    subprocess.run([EVENHAND, "runs", "export", str(run), "--out", str(to)], check=True)
    return to.read_bytes()


def test_prompts_stopped_in_the_middle_resumed_and_replayed_give_equal_bytes(
    local_server: str, tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    lines = [{"id": p, "prompt": f"Describe a typical {p} in one sentence."} for p in PEOPLE]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = tmp_path / "run"

    first = _mitigate(prompts, run, "--base-url", local_server)
    while _finished(run) < 2:
        assert first.poll() is None, first.communicate()
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=800)
    assert first.returncode == 130
    in_the_middle = RunReader(run).totals().items
    assert 2 <= in_the_middle < len(PEOPLE)

    second = _mitigate(prompts, run, "--base-url", local_server)
    said, _ = second.communicate(timeout=1200)
    # A small model may leave replies unreadable (2) or have nothing accepted (4).
    assert second.returncode in (0, 2, 4), said
    numbers = json.loads(said)
    assert numbers["answered"] + numbers["failed"] == len(PEOPLE)
    assert numbers["not_run"] == 0
    assert numbers["answered"] >= 6

    # Offline: a port where nothing answers. Only the tape can.
    third = _mitigate(prompts, tmp_path / "again", "--replay", str(run))
    said, problem = third.communicate(timeout=800)
    assert third.returncode == second.returncode, problem
    assert _export(run, tmp_path / "a.jsonl") == _export(tmp_path / "again", tmp_path / "b.jsonl")
    live, replayed = (
        RunReader(run).turns().collect(),
        RunReader(tmp_path / "again").turns().collect(),
    )
    assert live.equals(replayed)

    _every_call_is_recorded_and_typed(RunReader(run))


def _every_call_is_recorded_and_typed(run: RunReader) -> None:
    results, turns = run.results().collect(), run.turns().collect()
    recorded = dict(turns.group_by("position").len().iter_rows())
    for position, calls in results.select("position", "calls").iter_rows():
        assert recorded[position] == calls
    readers: dict[str, type[Reply]] = {
        "bias_evaluator": Harm,
        "performance_evaluator": Quality,
        "generator": FreeText,
    }
    answered = results.filter(pl.col("status") == "answered")["position"].implode()
    typed = 0
    for role, texts, finish in (
        turns.filter(pl.col("position").is_in(answered))
        .select("role", "texts", "finish")
        .iter_rows()
    ):
        if role != "generator" and finish[0] == "stop":
            readers[role].read(texts[0])  # held to the schema by the server: strict reading works
            typed += 1
    assert typed >= 2 * len(answered[0])


async def test_the_real_server_gives_schema_logprobs_and_samples(local_server: str) -> None:
    model = Endpoint(local_server, model="smollm2")
    try:
        request = ModelRequest(prompt="The nurse said that", max_tokens=4, n=2, logprobs=3, seed=1)
        reply = await model.complete(request)
        assert len(reply.samples) == 2
        for sample in reply.samples:
            assert sample.logprobs is not None
            assert all(
                token.logprob is not None and token.logprob <= 0 for token in sample.logprobs
            )
        assert reply.usage is not None
        assert await model.list_models() == ("smollm2",)
    finally:
        await model.close()
