"""What `dev new` writes is installed as it is, passes its own tests, and works everywhere."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import installation
from evenhand.api.installation import KEPT, LONGEST, write
from evenhand.core import registry
from evenhand.core.errors import UserError
from evenhand.experiments import config as configuration
from tests.cli.conftest import BIN, Run
from tests.errors import assert_names, raises_naming

from .conftest import NEW, clean_of_ours


def said(ran: subprocess.CompletedProcess[str]) -> Any:
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def test_their_own_tests_pass(their_python: Path, new_packages: list[Path], tmp_path: Path) -> None:
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:timeout")
    ran = subprocess.run(
        [their_python, "-W", "error", "-m", "pytest", *quiet, *new_packages],
        cwd=tmp_path, env=clean_of_ours(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "15 passed" in ran.stdout  # five of the instrument, four of the method, six more


def test_the_instrument_measures(theirs: Run) -> None:
    guess = said(theirs("measure", "coats", "--method", "random", "--out", "coats", "--json"))
    assert guess["scores"]["coverage"]["n"] == 24
    few = ("measure", "coats", "--jobs", "2", "--method", "random", "--out", "few-coats", "--json")
    assert said(theirs(*few))["scores"]["coverage"]["n"] == 6
    assert_names(theirs("measure", "--help").stdout, "coats")


def test_the_method_answers_and_is_listed(theirs: Run) -> None:
    listed = said(theirs("methods", "--json"))["two_looks"]
    assert listed["settings"] == {"rounds": 1}
    assert_names(listed["about"], "critic")
    args = ("measure", "coats", "--jobs", "2", "--method", "two_looks", "--set", "rounds=0")
    report = said(theirs(*args, "--out", "coats-looked", "--json"))
    # Of a nurse it says nothing that is not said; a pilot is a man to it. Right otherwise.
    values = {one["name"]: one["value"] for one in report["scores"]["estimates"]}
    assert values == {"guessed": 0.5, "right": 1.0}


def test_the_scorer_scores_and_is_listed(theirs: Run) -> None:
    listed = said(theirs("scorers", "list", "--json"))
    assert {"name": "shouting", "kind": "from evenhand-shouting 0.1.0"} in listed
    assert {"name": "gendered_titles=ENDINGS", "kind": "from evenhand-titles 0.3"} in listed
    scored = said(theirs("scorers", "score", "shouting", "GO AWAY now please", "--json"))
    assert scored[0]["scores"] == {"toxicity": 0.5}
    assert scored[0]["because"] == ["GO", "AWAY"]
    least = ("scorers", "score", "shouting", "", "--json")
    assert theirs(*least).returncode == 2  # an empty text has no score, and is no 0


@pytest.mark.parametrize("name", ["a", "x" * LONGEST])
def test_short_and_long_names_make_tidy_files(name: str, tmp_path: Path) -> None:
    for kind in NEW:
        folder = write(kind, name, tmp_path / kind)
        for check in (["format", "--check"], ["check"]):
            ran = subprocess.run(
                [BIN / "ruff", *check, "--no-cache", "."], cwd=folder,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stdout


def test_the_command_says_what_it_wrote_and_what_to_run(theirs: Run) -> None:
    made = said(theirs("dev", "new", "instrument", "hats", "--into", "mine", "--json"))
    assert made["folder"] == "mine/evenhand_hats"
    assert made["files"] == [
        "pyproject.toml",
        *(f"src/evenhand_hats/{file}" for file in ("__init__.py", "card.yaml", "instrument.py")),
        "src/evenhand_hats/py.typed",
        "src/evenhand_hats/words.toml",
        "tests/test_hats.py",
    ]
    assert made["next"][0].removeprefix("pip install -e ") == "'mine/evenhand_hats[dev]'"
    again = theirs("dev", "new", "instrument", "hats", "--into", "mine")
    assert again.returncode == 1
    assert_names(" ".join(again.stderr.split()), "mine/evenhand_hats")
    installed = theirs(
        "dev", "new", "method", "coats", "--into", "mine"
    )  # the instrument's package
    assert_names(" ".join(installed.stderr.split()), "evenhand_coats", "installed")


def test_what_to_run_next_can_be_pasted_whatever_the_folder_is_called(
    theirs: Run, tmp_path: Path
) -> None:
    odd = str(tmp_path / "it's a $(id)")
    made = said(theirs("dev", "new", "scorer", "odd", "--into", odd, "--json"))
    pip, tests = map(shlex.split, made["next"][:2])
    assert pip[-1] == f"{odd}/evenhand_odd[dev]"
    assert tests == ["pytest", f"{odd}/evenhand_odd"]


@pytest.mark.parametrize(
    "name",
    ["", "A", "3x", "a-b", "a_", "_a", "a__b", "ü", "a/b", "..", "a b", "a\n", "x" * (LONGEST + 1)],
)
def test_what_is_no_name_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    for kind in NEW:
        with raises_naming(UserError, repr(name)):
            write(kind, name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    groups: dict[installation.Kind, registry.Group] = {
        "instrument": "instruments",
        "method": "methods",
        "scorer": "scorers",
    }
    for kind, group in groups.items():
        for name in (*registry.OWN[group], *KEPT[kind]):
            with raises_naming(UserError, kind, repr(name)):
                write(kind, name, tmp_path)
    assert set(KEPT["scorer"]) == set(configuration.SCORERS)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "evenhand_mine").mkdir()
    (tmp_path / "evenhand_mine/kept").write_text("kept")
    with raises_naming(UserError, "--into"):
        write("scorer", "mine", tmp_path)
    assert [file.name for file in (tmp_path / "evenhand_mine").iterdir()] == ["kept"]
