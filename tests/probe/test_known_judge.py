"""`evenhand doctor --probe` by the command, and what a run then says of its judge."""

import json
from pathlib import Path

from cli.conftest import Run, cold_evenhand, endpoint, evenhand
from evenhand.experiments.probe import find
from loopback.process import in_own_process

from .models import Pretended

__all__ = ["cold_evenhand", "endpoint", "evenhand"]  # the fixtures

MITIGATE = ("mitigate", "prompts.jsonl", "--method", "stardtox", "--out", "run")
CONFIG = '[models.judge]\nbase_url = "{url}"\nmodel = "pretended"\n[cast]\nbias_evaluator = "judge"'


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
        before = evenhand(*MITIGATE, "--dry-run", XDG_CACHE_HOME=cache)
        assert before.returncode == 0, before.stderr
        probed = evenhand("doctor", "--probe", "--judge", "judge", XDG_CACHE_HOME=cache)
        after = evenhand(*MITIGATE, XDG_CACHE_HOME=cache)
        kept = find(tmp_path / "cache" / "evenhand" / "probes", server.url, "pretended")
    assert _judge(before.stderr).endswith("; not probed: evenhand doctor --probe --judge judge")
    assert probed.returncode == 0, probed.stdout + probed.stderr  # a result is no error
    lines = [line.split(maxsplit=1) for line in probed.stdout.splitlines()]
    said = {words[0]: words[1] for words in lines if words[0] in ("reads", "schema", "judge")}
    assert said["reads"].strip() == "shown: 12 of 12 right (0.74 to 1.00; chance 0.33)"
    assert said["schema"].strip() == "24 of 24 verdicts were the JSON asked for"
    assert said["judge"].strip().startswith("constant: AUC 0.50 (0.29 to 0.71; chance 0.50)")
    assert kept is not None
    warned = _judge(after.stderr)
    assert f"; the probe of {kept.made[:10]} says constant: AUC 0.50" in warned
    assert "its verdicts mean nothing" in warned
    assert warned.endswith(": evenhand doctor --probe --judge judge")
    assert "; not probed: evenhand doctor --probe" in _judge(after.stderr, "performance_evaluator")


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
    assert found["probe"]["judge"]["verdict"] == "tells blunt bias apart"
    assert [one["good"] for one in found["findings"] if one["what"] == "judge"] == [None]
    assert "says tells blunt bias apart: AUC 1.00 (0.83 to 1.00; chance 0.50)" in _judge(told)
    assert "mean nothing" not in told


def test_what_is_kept_of_one_model_says_nothing_of_another_and_a_broken_file_nothing_at_all(
    evenhand: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "evenhand" / "probes"
    with in_own_process(Pretended()) as server:
        ran = evenhand("doctor", "--probe", "--base-url", server.url,
                       XDG_CACHE_HOME=str(tmp_path / "cache"))  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert find(folder, server.url, "pretended") is not None
    assert find(folder, server.url, "another") is None
    assert find(folder, "http://127.0.0.1:9/v1", "pretended") is None
    [file] = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-40])
    assert find(folder, server.url, "pretended") is None


def test_a_judge_that_the_config_does_not_have_is_refused_with_those_it_has(evenhand: Run) -> None:
    ran = evenhand("doctor", "--probe", "--judge", "nobody")
    assert ran.returncode == 1
    assert "the config has no model 'nobody'; it has: default" in ran.stderr
