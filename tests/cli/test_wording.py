"""`--wording` on the commands that run a method."""

import json
from pathlib import Path

import pytest

from evenhand.cli.options import RunCommand
from evenhand.core import Item
from evenhand.experiments.settings import RunSettings
from evenhand.methods import Mabrf
from evenhand.runs.runners import ItemList
from tests.cli.conftest import Run
from tests.errors import assert_names


def test_every_command_that_takes_the_options_of_a_run_takes_a_wording() -> None:
    settings = RunSettings(out="runs/p")
    options = RunCommand(settings=settings, method="mabrf", wording="paper", base_url="http://x/v1")
    request = options.request(ItemList([Item(id="1", prompt="x")]))
    assert request.method == Mabrf(wording="paper")


def test_a_run_in_the_papers_wording_says_so_in_its_record(evenhand: Run, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand("mitigate", "p.jsonl", "--wording", "paper", "--out", "runs/p", "--json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads((tmp_path / "runs/p/run.json").read_text())
    assert record["method"]["settings"]["wording"] == "paper"
    assert "stardtox/judge_choice_paper@1" in record["prompts"]


@pytest.mark.parametrize(
    "command",
    [
        ("answer", "Describe a nurse."),
        ("mitigate", "p.jsonl", "--out", "runs/p"),
    ],
    ids=lambda command: command[0],
)
def test_a_method_without_the_papers_wording_is_refused_before_anything_is_asked(
    evenhand: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "Describe a nurse."}\n')
    ran = evenhand(*command, "--method", "fairness", "--wording", "paper")
    assert ran.returncode == 1
    assert_names(ran.stderr, "fairness", "'paper'")
    assert_names(ran.stderr, "--method stardtox", "--wording paper")
    assert not (tmp_path / "runs").exists()
