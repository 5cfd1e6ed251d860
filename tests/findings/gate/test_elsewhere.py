"""The gate where others run it: as a step of a workflow, and within a project's own tests."""

import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import evenhand
from evenhand.findings.gate import Gate
from evenhand.integrations.pytest_plugin import evenhand_gate
from tests.cli.conftest import clean_environment
from tests.errors import assert_names
from tests.findings.gate import texts

__all__ = ["evenhand_gate"]  # the fixture, as pytest finds it by itself where it is installed

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file of a gate, and two runs that are alike."""
    made = tmp_path_factory.mktemp("project")
    texts.write(made)
    (made / "evenhand.gate.toml").write_text(texts.STORED)
    for name in ("main", "now"):
        evenhand.measure(
            "overcorrection",
            method="stored",
            out=made / name,
            options={"texts": made / "texts.jsonl"},
        )
    return made


def _steps(inputs: dict[str, str], folder: Path, **environment: str) -> tuple[int, dict[str, str]]:
    """Run the steps of action.yml as a runner would: each `run` is a script of its own, in which
    nothing is replaced, with its `env` filled in; what it puts out is read from a file."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: one.get("default", "") for name, one in action["inputs"].items()} | inputs
    values = {f"inputs.{name}": value for name, value in given.items()}
    values["github.action_path"] = str(ROOT)
    code, output = 0, folder / "output.txt"
    output.write_text("")
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        filled = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda one: values[one[1]], value)
            for name, value in step["env"].items()
        }
        script = folder / "script.sh"
        script.write_text(step["run"])
        own = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output),
               "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}  # fmt: skip
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env={**clean_environment(), **own, **environment, **filled},
            capture_output=True,
            text=True,
            check=False,
        )
        (folder / "log.txt").write_text(ran.stdout)
        code = ran.returncode
        if code:
            break
    said = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return code, said


def test_the_action_runs_the_gate_and_an_inconclusive_one_is_a_warning(folder: Path) -> None:
    (folder / "strict.toml").write_text(texts.STORED.replace("0.3", "0.02"))
    inputs = {"baseline": "main\n", "run": "now", "file": "strict.toml", "install": "no",
              "out": "found"}  # fmt: skip
    code, said = _steps(inputs, folder)
    assert (code, said) == (0, {"code": "4", "verdict": "inconclusive"})
    assert (folder / "summary.md").read_text().startswith("Gate: INCONCLUSIVE.")
    assert (folder / "log.txt").read_text().count("::warning file=strict.toml,line=") == 2
    assert sorted(one.name for one in (folder / "found").iterdir()) == [
        "gate.json", "gate.md", "gate.sarif", "junit.xml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "verdict", "asked_for", "ends"),
    [
        (0, "pass", "warn", 0),
        (1, "fail", "warn", 1),
        (2, "error", "warn", 2),
        (3, "stopped", "warn", 3),
        (4, "inconclusive", "warn", 0),
        (4, "inconclusive", "fail", 4),
        (5, "error", "warn", 5),
        (130, "stopped", "warn", 130),
    ],
)
def test_of_all_exit_codes_a_step_is_green_for_pass_and_on_request_for_inconclusive(
    tmp_path: Path, code: int, verdict: str, asked_for: str, ends: int
) -> None:
    program = tmp_path / "bin" / "evenhand"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > asked.txt\nexit {code}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    inputs = {"baseline": "a b\n$(touch hacked)", "inconclusive": asked_for, "install": "no",
              "options": "--max-cost\n2"}  # fmt: skip
    found = _steps(inputs, tmp_path, PATH=f"{program.parent}:{os.environ['PATH']}")
    assert found == (ends, {"code": str(code), "verdict": verdict})
    asked = (tmp_path / "asked.txt").read_text().split("|")
    named = ["--baseline", "a b", "--baseline", "$(touch hacked)"]
    rest = ["--max-cost", "2", "--", "evenhand.gate.toml", ""]
    assert asked == ["gate", "--out", "runs/gate", *named, *rest]
    assert not (tmp_path / "hacked").exists()


def test_the_action_uses_no_other_action_and_names_no_host() -> None:
    text = (ROOT / "action.yml").read_text()
    steps = yaml.safe_load(text)["runs"]["steps"]
    assert all("uses" not in step and step["shell"] == "bash" for step in steps)
    assert "://" not in text.replace("s3://…", "")


def test_the_fixture_gives_the_verdict_of_the_command(
    folder: Path, evenhand_gate: Callable[..., Gate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ran = evenhand_gate(baseline="main", out="again")  # runs what asks nobody
    assert ran.passed, ran.says
    assert evenhand_gate(baseline="main", run="again").passed
    assert evenhand_gate(baseline=["main"], run="nowhere").verdict == "error"
    assert evenhand_gate("none.toml", baseline="main", run="now").verdict == "error"
    assert not evenhand_gate(baseline="main", run=folder / "main").passed
    assert_names(evenhand_gate(baseline="main", run="main").says, "baseline itself", "--out")


def test_pytest_finds_the_fixture_by_itself_and_loads_nothing_large_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module = project["entry-points"]["pytest11"]["evenhand"]
    assert hasattr(import_module(module), "evenhand_gate")
    code = f"import sys, {module}; print({{'polars', 'numpy', 'pydantic'}} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout == "set()\n", ran.stderr
