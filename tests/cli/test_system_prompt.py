"""`--system` and `[models.default] system`, as a command takes them."""

import json
from pathlib import Path

import pytest

from evenhand.runs.store import RunReader
from tests.cli.conftest import Run
from tests.errors import assert_names

PROMPT = "You are the assistant of a shop."


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    (tmp_path / "prompts.jsonl").write_text('{"id": "p0", "prompt": "Describe a nurse."}\n')
    (tmp_path / "shop.txt").write_text(f"{PROMPT}\n")
    return tmp_path


def _systems(run: Path) -> list[tuple[str, bool]]:
    turns = RunReader(run).turns().collect()
    return [
        (role, messages[0]["content"].startswith(PROMPT))
        for role, messages in turns.select("role", "messages").iter_rows()
    ]


def test_a_file_or_the_words_or_the_config_are_one_run(prompts: Path, evenhand: Run) -> None:
    asked = ("mitigate", "prompts.jsonl", "--method", "default", "-o", "run", "--json")
    made = evenhand(*asked, "--system", "@shop.txt")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["cast"]["generator"]["system"] == PROMPT
    assert _systems(prompts / "run") == [("generator", True)]
    assert evenhand(*asked, "--system", PROMPT).returncode == 0
    (prompts / "evenhand.toml").write_text(f'[models.default]\nsystem = "{PROMPT}"\n')
    assert evenhand(*asked).returncode == 0
    other = evenhand(*asked, "--system", "Another.")
    assert other.returncode == 1
    said = " ".join(other.stderr.split())
    assert_names(said, "system prompt", "generator")
    assert f'"{PROMPT}"' in said


def test_of_an_answer_the_judges_do_not_get_it(prompts: Path, evenhand: Run) -> None:
    del prompts
    ran = evenhand("answer", "Describe a nurse.", "--show-trace", "--json", "--system", PROMPT)
    assert ran.returncode == 0, ran.stderr
    got = {
        turn["role"]: turn["messages"][0]["content"].startswith(PROMPT)
        for turn in json.loads(ran.stdout)["turns"]
    }
    assert got["generator"]
    assert not got["bias_evaluator"]


@pytest.mark.parametrize(
    "command",
    [
        ("measure", "bbq"),
        ("counterfactual",),
        ("frontier",),
        ("gate",),
        ("monitor",),
        ("overcorrection",),
    ],
)
def test_every_command_that_asks_for_answers_takes_it(
    command: tuple[str, ...], evenhand: Run
) -> None:
    assert "--system" in evenhand(*command, "--help").stdout


@pytest.mark.parametrize(
    "command", [("audit", "judge"), ("train", "debate", "run"), ("audit", "harm")]
)
def test_a_command_that_measures_no_answers_does_not(
    command: tuple[str, ...], evenhand: Run
) -> None:
    assert "--system" not in evenhand(*command, "--help").stdout


@pytest.mark.parametrize(("given", "why"), [("@none.txt", "cannot be read"), (" ", "is empty")])
def test_one_that_says_nothing_is_refused(
    prompts: Path, evenhand: Run, given: str, why: str
) -> None:
    del prompts
    ran = evenhand("mitigate", "prompts.jsonl", "-o", "run", "--system", given)
    assert ran.returncode == 1
    assert why in " ".join(ran.stderr.split())
