"""`evenhand gate` as CI runs it, against a real server on this machine."""

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from evenhand import gate
from tests.cli.conftest import BIN, Run, clean_environment, evenhand
from tests.errors import assert_names
from tests.findings.gate import texts
from tests.loopback.process import RemoteServer

__all__ = ["evenhand"]  # the fixture

GATE = ("gate", "evenhand.gate.toml")


@pytest.fixture
def folder(tmp_path: Path, server: RemoteServer, evenhand: Run, kept: dict[str, Path]) -> Path:
    """A folder with a file, texts and a baseline, which is made once."""
    server.set("fault", "")
    texts.write(tmp_path)
    if "main" in kept:
        shutil.copytree(kept["main"], tmp_path / "main")
        return tmp_path
    made = evenhand(*GATE, "--as-baseline", "--out", "main")
    assert made.returncode == 0, made.stderr
    assert_names(made.stdout, "evenhand.gate.toml", "--baseline main")
    kept["main"] = tmp_path / "main"
    return tmp_path


@pytest.fixture(scope="module")
def kept() -> dict[str, Path]:
    return {}


def test_a_twin_passes_and_says_so_in_every_form(
    folder: Path, server: RemoteServer, evenhand: Run
) -> None:
    before = sum(server.read().outcomes.values())
    summary = folder / "summary.md"
    summary.write_text("# mine\n")
    more = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    ran = evenhand(*GATE, "--baseline", "main", "--out", "now", **more)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Gate: PASS" in ran.stdout
    assert "::error" not in ran.stdout
    assert sum(server.read().outcomes.values()) - before == texts.TEXTS  # two checks, one run
    found = json.loads((folder / "now/gate.json").read_text())
    assert [one["verdict"] for one in found["checks"]] == ["pass", "pass"]
    assert summary.read_text() == "# mine\n" + (folder / "now/gate.md").read_text()
    assert Xml.parse(folder / "now/junit.xml").getroot().attrib["failures"] == "0"
    assert json.loads((folder / "now/gate.sarif").read_text())["runs"][0]["results"] == []
    again = evenhand(*GATE, "--baseline", "main", "--out", "now", "--json")
    (note,) = json.loads(again.stdout)["notes"]
    assert note["code"] == "gate.finished_before"
    assert note["values"] == {"run": "now/run-made-worse"}


def test_a_shown_regression_fails_with_an_annotation_at_its_check(
    folder: Path, server: RemoteServer, evenhand: Run
) -> None:
    server.set("fault", "some worse")
    ran = evenhand(*GATE, "--baseline", "main", "--out", "now", GITHUB_ACTIONS="true")
    assert ran.returncode == 1, ran.stdout
    off, *_, on = [line for line in ran.stdout.splitlines() if line.startswith("::")][:2]
    assert off == f"::stop-commands::{on.strip(':')}"
    said = ran.stdout.splitlines()[-1]
    place = "::error file=evenhand.gate.toml,line=2,title=evenhand gate%3A fail%3A made worse::"
    assert said.startswith(place)
    assert_names(said.removeprefix(place), "worse")


def test_a_reworded_system_prompt_is_judged_and_finished_runs_take_none(
    folder: Path, evenhand: Run
) -> None:
    ran = evenhand(*GATE, "--baseline", "main", "--out", "now", "--system", "Be fair.")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    record = json.loads((folder / "now/run-made-worse/run.json").read_text())
    assert {one.get("system") for role, one in record["cast"].items() if role != "default"} == {
        "Be fair."
    }
    idle = evenhand(*GATE, "--baseline", "main", "--run", "now", "--system", "Be fair.")
    assert idle.returncode == 5
    assert "--system" in idle.stderr


def test_a_dead_endpoint_is_broken_and_leaves_a_result_that_says_so(
    folder: Path, evenhand: Run
) -> None:
    dead = {"EVENHAND_BASE_URL": "http://127.0.0.1:9/v1", "GITHUB_ACTIONS": "true"}
    ran = evenhand(*GATE, "--baseline", "main", "--out", "now", **dead)
    assert ran.returncode == 5, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("::error file=evenhand.gate.toml,line=1,")
    assert Xml.parse(folder / "now/junit.xml").getroot().attrib["errors"] == "1"


def test_a_run_that_a_cap_stopped_is_not_judged_and_what_is_there_of_it_is_no_pass(
    folder: Path, evenhand: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    capped = evenhand(*GATE, "--baseline", "main", "--out", "now", "--max-calls", "12")
    assert capped.returncode == 3, capped.stderr
    assert not (folder / "now/gate.json").exists()
    monkeypatch.chdir(folder)
    half = gate(baseline="main", run="now/run-made-worse")
    assert half.verdict == "error"
    assert_names(half.says, "12 items")


def test_a_pilot_forecasts_and_is_no_pass(folder: Path, evenhand: Run) -> None:
    ran = evenhand(*GATE, "--pilot", "50", "--out", "now")
    assert ran.returncode == 4, ran.stderr
    assert "the whole gate" in ran.stdout


def test_without_a_baseline_the_two_commands_that_make_and_use_one_are_said(
    folder: Path, evenhand: Run
) -> None:
    ran = evenhand(*GATE, "--out", "now")
    assert ran.returncode == 5
    assert_names(ran.stderr, "evenhand.gate.toml", "--as-baseline", "--out runs/main")


def test_a_gate_that_nobody_reads_ends_with_its_code_all_the_same(tmp_path: Path) -> None:
    command = f"{BIN}/evenhand gate none.toml --json | true; exit ${{PIPESTATUS[0]}}"
    environment = {**clean_environment(), "PYTHONUNBUFFERED": ""}
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert ran.returncode in (1, 5), ran.stderr
