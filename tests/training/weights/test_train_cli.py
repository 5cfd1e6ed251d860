"""`evenhand train …` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.cli.train import status
from evenhand.core.errors import UserError
from evenhand.training.events import TrainingStep
from tests.errors import assert_names

ENTRY = "from evenhand.cli import main; main()"
STAGES = ("sft", "reward", "dpo", "rloo", "ppo")


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)


def test_help_names_every_stage_and_imports_no_torch() -> None:
    code = f"import sys\ntry:\n    {ENTRY}\nfinally:\n    assert 'torch' not in sys.modules"
    done = _python(code, "train", "--help")
    assert done.returncode == 0, done.stderr
    for name in (*STAGES, "from-gguf", "to-gguf"):
        assert f" {name} " in done.stdout


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_shows_an_example(stage: str) -> None:
    shown = CliRunner().invoke(app, ["train", stage, "--help"])
    assert shown.exit_code == 0
    assert f"Example: evenhand train {stage}" in shown.output


def test_without_the_extra_it_says_what_to_install() -> None:
    code = f"import sys; sys.modules['trl'] = None; {ENTRY}"
    done = _python(code, "train", "sft", "--model", "m", "--pairs", "p", "--out", "o")
    assert done.returncode == 1
    assert "pip install 'evenhand[train]'" in done.stderr.replace("\n", " ")


def test_a_stage_trains_and_says_where_the_model_is(
    tiny: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    arguments = ["train", "sft", "--model", str(tiny), "--pairs", str(toy_pairs), "--json"]
    arguments += ["--out", str(tmp_path), "--bias-type", "age"]
    for setting in ("batch=4", "max_steps=2", "threads=1"):
        arguments += ["--set", setting]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 4  # two steps cannot show that the loss fell
    said = json.loads(done.stdout)
    assert said["outcome"] == "inconclusive"
    assert said["model"] == str(tmp_path / "model")
    assert said["steps"] == 2
    assert_names(done.stderr, "sft", "2 of 2", "loss")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["--set", "batch"], "name=value"),
        (["--set", "bach=4"], "no setting 'bach'. Did you mean 'batch'?"),
        (["--set", "batch=four"], "--set batch: "),
        (["--set", "batch=0"], "batch is 0"),
        (["--processes", "3"], "batch of 32 is not a multiple"),
        (["--bias-type", "beauty"], "has no bias type 'beauty'. Available: age, profession"),
        (["--model", "nowhere"], "from-gguf"),
        (["--pairs", "nowhere"], "train pairs"),
    ],
)
def test_a_wrong_option_says_what_to_do(
    tiny: Path, toy_pairs: Path, tmp_path: Path, changed: list[str], said: str
) -> None:
    arguments = ["train", "sft", "--model", str(tiny), "--pairs", str(toy_pairs)]
    arguments += ["--out", str(tmp_path / "out"), *changed]
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert said in str(caught.value)


def test_a_step_is_shown_with_all_that_it_measured() -> None:
    step = TrainingStep(
        stage="rloo",
        step=12,
        steps=1_000,
        loss=0.25,
        reward=1.5,
        kl=0.0125,
        length=84.2,
        eta_seconds=180.0,
    )
    first, *parts = status(step).split(" · ")
    assert first.split() == ["rloo", "12", "of", "1,000"]
    assert parts[:3] == ["loss 0.250", "reward 1.50", "KL 0.013"]
    assert parts[3].startswith("84 tok")
    assert status(step).endswith("left")
