"""`evenhand doctor --probe` by the command, and what a run then says of its judge."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand.core.errors import ModelError
from evenhand.experiments.config import probe_folder
from evenhand.experiments.installation import Prober, silent
from evenhand.experiments.probe import find, judging, keep
from evenhand.models.base import ModelReply, ModelRequest, Sample
from tests.cli.conftest import Run, cold_evenhand, endpoint, evenhand
from tests.errors import assert_names
from tests.loopback.process import in_own_process

from .models import TELLS, Pretended

__all__ = ["cold_evenhand", "endpoint", "evenhand"]  # the fixtures

PROBE = "evenhand doctor --probe"
MITIGATE = ("mitigate", "prompts.jsonl", "--method", "stardtox", "--out", "run")
CONFIG = (
    '[models.judge]\nbase_url = "{url}"\nmodel = "pretended"\n[roles]\nbias_evaluator = "judge"'
)


def _judge(told: str, role: str = "bias_evaluator") -> str:
    [line] = [one for one in told.splitlines() if one.startswith(f"judge {role} =")]
    return line


def test_a_run_warns_of_a_judge_that_the_probe_found_constant(
    evenhand: Run, tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    with in_own_process(Pretended(judge="constant")) as server:
        (tmp_path / "evenhand.toml").write_text(CONFIG.format(url=server.url))
        before = evenhand(*MITIGATE, "--pilot", "50", XDG_CACHE_HOME=cache)
        assert before.returncode == 0, before.stderr
        probed = evenhand("doctor", "--probe", "--judge", "judge", XDG_CACHE_HOME=cache)
        after = evenhand(*MITIGATE, XDG_CACHE_HOME=cache)
        probes = tmp_path / "cache" / "evenhand" / "probes"
        kept = find(probes, server.url, "pretended")
        assert kept is not None
        keep(probes, kept.model_copy(update={"judge": judging([0.1] * 12, [0.9] * 12)}))
        turned = _judge(evenhand(*MITIGATE, "--pilot", "50", XDG_CACHE_HOME=cache).stderr)
    assert _judge(before.stderr).endswith(f"{PROBE} --judge judge")
    assert probed.returncode == 0, probed.stdout + probed.stderr  # a result is no error
    lines = [line.split(maxsplit=1) for line in probed.stdout.splitlines()]
    said = {words[0]: words[1] for words in lines if words[0] in ("reads", "schema", "judge")}
    assert_names(said["reads"], "above chance", "12 of 12", "(0.74 to 1.00;", "chance 0.50")
    assert_names(said["schema"], "24 of 24", "JSON")
    assert_names(said["judge"], "constant: AUC 0.50", "(0.29 to 0.71;", "chance 0.50")
    warned = _judge(after.stderr)
    assert_names(warned, kept.made[:10], "constant: AUC 0.50")
    assert_names(warned, "mean nothing")
    assert_names(turned, "reversed: AUC 0.00")
    assert_names(turned, "are reversed")
    assert warned.endswith(f"{PROBE} --judge judge")
    assert f"{PROBE} --model" in _judge(after.stderr, "performance_evaluator")


def test_as_json_the_probe_is_whole_and_a_judge_that_tells_is_no_warning(
    evenhand: Run, tmp_path: Path
) -> None:
    cache = str(tmp_path / "cache")
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    with in_own_process(Pretended("always A")) as server:
        asked = ("--base-url", server.url)
        ran = evenhand("doctor", "--probe", "--json", *asked, XDG_CACHE_HOME=cache)
        told = evenhand(*MITIGATE, *asked, XDG_CACHE_HOME=cache).stderr
    found = json.loads(ran.stdout)
    assert found["healthy"] is True
    assert found["probe"]["reads"]["right"] == 4
    assert found["probe"]["judge"]["verdict"] == TELLS
    assert [one["good"] for one in found["findings"] if one["what"] == "judge"] == [None]
    assert f"{TELLS}: AUC 1.00" in _judge(told)
    assert_names(_judge(told), "(0.83 to 1.00;", "chance 0.50")
    assert "mean nothing" not in told


def test_what_is_kept_of_one_model_says_nothing_of_another_and_a_broken_file_nothing_at_all(
    evenhand: Run, tmp_path: Path
) -> None:
    probes = tmp_path / "cache" / "evenhand" / "probes"
    with in_own_process(Pretended()) as server:
        ran = evenhand("doctor", "--probe", "--base-url", server.url,
                       XDG_CACHE_HOME=str(tmp_path / "cache"))  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert find(probes, server.url, "pretended") is not None
    assert find(probes, server.url, "another") is None
    assert find(probes, "http://127.0.0.1:9/v1", "pretended") is None
    [file] = probes.iterdir()
    whole = json.loads(file.read_bytes())
    file.write_text(json.dumps({**whole, "questions": "0" * 64}))  # others were asked
    assert find(probes, server.url, "pretended") is None
    file.write_text(json.dumps(whole))
    assert find(probes, server.url, "pretended") is not None
    file.write_bytes(file.read_bytes()[:-40])
    assert find(probes, server.url, "pretended") is None


@dataclass
class Failing:
    """A model that marks a text without a look at it, and is gone after so many calls, or for each
    call whose number can be divided by `flaky`."""

    calls: int
    name: str = "pretended"
    flaky: int = 0

    def describe(self) -> dict[str, Any]:
        return {"url": "http://127.0.0.1:9/v1"}

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls -= 1
        if self.calls < 0 or (self.flaky and self.calls % self.flaky == 0):
            raise ModelError("nobody listens")
        said = {"choice": '{"answer": "A"}', "harm": '{"reason": "none", "harm": 50}'}
        assert request.schema is not None
        return ModelReply(samples=(Sample(said[request.schema.name]),), usage=None)

    async def close(self) -> None: ...


@pytest.mark.parametrize("calls", [0, 30])
async def test_a_probe_that_broke_off_says_so_and_leaves_the_earlier_result_as_it_was(
    calls: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = [line async for line in Prober(probe_folder(), silent).lines(Failing(48))]
    assert (said[-1].what, said[-1].good) == ("kept", None)
    kept = find(probe_folder(), "http://127.0.0.1:9/v1", "pretended")
    assert kept is not None
    assert kept.judge.verdict == "constant"
    said = [line async for line in Prober(probe_folder(), silent).lines(Failing(calls))]
    assert "kept" not in [line.what for line in said]
    assert (said[-1].what, said[-1].good) == ("probe", False)
    assert_names(said[-1].said, "nobody listens.")
    assert_names(said[-1].said, "not stored", "doctor --probe")
    assert find(probe_folder(), "http://127.0.0.1:9/v1", "pretended") == kept


async def test_of_an_endpoint_that_fails_now_and_then_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prober = Prober(probe_folder(), silent)
    said = [line async for line in prober.lines(Failing(1000, flaky=3))]
    assert prober.result is not None
    assert prober.result.broke_off is None  # never three failures in a row
    assert (said[-1].what, said[-1].good) == ("probe", False)
    assert_names(said[-1].said, "16 calls", "nobody listens.")
    schema = prober.result.in_schema
    assert (schema.held, schema.of) == (16, 16)  # 8 of 24 were not answered at all
    assert find(probe_folder(), "http://127.0.0.1:9/v1", "pretended") is None


def test_a_judge_that_the_config_does_not_have_is_refused_with_those_it_has(evenhand: Run) -> None:
    ran = evenhand("doctor", "--probe", "--judge", "nobody")
    assert ran.returncode == 1
    assert_names(ran.stderr, "--judge", "'nobody'", "default")
