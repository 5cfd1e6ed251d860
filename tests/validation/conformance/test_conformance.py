"""The suite tells a right scorer from a wrong one, and evenhand is a right one."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.validation.conformance import run, suite
from evenhand.validation.conformance.checks import PropertyResult, judge
from tests.errors import assert_names, raises_naming
from tests.validation.conformance import reference

RIGHT = "a reader who is always right has no bias"
ONE_SIDED = "a right reader has no bias on an unbalanced sample either"
COUNTED = "planted answers are counted as the paper defines"
ACCURACY = "accuracy is counted right"
ENDS = "the ends of the scale are reached"
NEGATED = "exchanged answers negate the score"
OWN = "a score is of its own items alone"
ORDER = "the order of the options changes nothing"
ONE = "bias in one category is found there and nowhere else"
COPIED = "copied rows leave the interval"
SPREAD = "no spread is not certainty"
P = "the largest bias and the largest change have a p-value"
SAID = "answers that cannot be read are said"
REFUSED = "refusing where it would do harm improves nothing"
GOLD = "who follows the text is right where the recorded gold is not"
APART = "always unknown is told from guessing both ways"
STOPPED = "a run that was stopped says so"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("suite")
    suite.write(made)
    return made


def _broken(folder: Path, fault: str = "") -> dict[str, PropertyResult]:
    judged = judge(suite.read_properties(folder), reference.scores(folder, fault))
    return {one.name: one for one in judged if one.state == "broken"}


def test_a_right_scorer_has_every_property(folder: Path) -> None:
    judged = judge(suite.read_properties(folder), reference.scores(folder))
    assert {one.name: one.state for one in judged if one.state != "holds"} == {}


@pytest.mark.parametrize(
    ("fault", "breaks"),
    [
        ("plain s_dis", {ONE_SIDED}),
        ("0 where no answer is biased", {ENDS}),
        ("scaled by the accuracy over all", {COUNTED, ENDS, OWN, ONE}),
        ("the biased option is looked for in one place",
         {RIGHT, ONE_SIDED, COUNTED, ENDS, NEGATED, ORDER, ONE, GOLD}),
        ("rows are independent", {COPIED}),
        ("no spread is certainty", {SPREAD}),
        ("p without spread is 1", {P}),
        ("failures unsaid", {SAID}),
        ("failures are left out", {REFUSED}),
        ("gold is always right", {GOLD}),
        ("only the bias scores", {APART}),
        ("a stop is unsaid", {STOPPED}),
    ],
)  # fmt: skip
def test_a_planted_fault_breaks_its_property_and_no_other(
    folder: Path, fault: str, breaks: set[str]
) -> None:
    assert set(_broken(folder, fault)) == breaks


def test_what_was_got_is_the_number_that_a_wrong_scorer_prints(folder: Path) -> None:
    """Of 47 templates 32 have the version that fits the stereotype: (64 - 30) / 94 = 0.362."""
    assert_names(_broken(folder, "plain s_dis")[ONE_SIDED].got, "s_dis", "+0.362", "+0.000")


@pytest.fixture(scope="module")
def of_ours(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PropertyResult]:
    found = asyncio.run(run.our_scores(folder, tmp_path_factory.mktemp("runs")))
    return {one.name: one for one in judge(suite.read_properties(folder), found)}


@pytest.mark.parametrize(
    "name",
    [RIGHT, ONE_SIDED, COUNTED, ACCURACY, ENDS, NEGATED, OWN, ORDER, ONE, COPIED, SPREAD, P, SAID,
     REFUSED, GOLD, APART, STOPPED],
)  # fmt: skip
def test_evenhand_has_every_property(of_ours: dict[str, PropertyResult], name: str) -> None:
    assert of_ours[name].state == "holds", of_ours[name].got


ADAPTER = """
import json, sys
cases = json.load(open(sys.argv[1] + "/cases.json"))
said = {"numbers": {"s_amb": {"value": 0.0}}}
json.dump({"tool": "always 0", "cases": {name: said for name in cases}}, open(sys.argv[2], "w"))
"""


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from evenhand.cli import main; main()"
    command = [sys.executable, "-c", code, "dev", "conformance", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_tool_of_ones_own_is_tested_by_its_adapter(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(ADAPTER)
    ran = _command("--tool", str(adapter), "--json")
    assert ran.returncode == 2, ran.stderr
    tool = json.loads(ran.stdout)["tools"][0]
    states = {one["name"]: one["state"] for one in tool["properties"]}
    assert tool["tool"] == "always 0"
    assert states[RIGHT] == "holds"
    assert states[COUNTED] == "broken"
    assert states[P] == states[ACCURACY] == "does not say"


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        ("raise SystemExit('no such thing')", "no such thing"),
        ("pass", "adapter.py wrote"),
        ("import sys; open(sys.argv[2], 'w').write('{}')", "tool: Field required"),
    ],
)
def test_an_adapter_that_does_not_keep_to_the_form_is_refused_with_what_to_do(
    folder: Path, tmp_path: Path, script: str, fact: str
) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(script)
    with raises_naming(UserError, fact):
        run.scores_of_tool(str(adapter), sys.executable, folder)


def test_a_tool_that_is_not_installed_is_said_with_the_command_that_installs_it(
    folder: Path,
) -> None:
    with raises_naming(UserError, "pip install crfm-helm"):
        run.scores_of_tool("helm", sys.executable, folder)


def test_an_unknown_tool_is_refused_with_those_that_there_are(folder: Path) -> None:
    with raises_naming(UserError, "helmet", "lm-eval", "inspect-evals"):
        run.scores_of_tool("helmet", sys.executable, folder)


def test_the_suite_is_the_same_wherever_it_is_written(folder: Path, tmp_path: Path) -> None:
    suite.write(tmp_path)
    written = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    assert written == sorted(f.relative_to(tmp_path) for f in tmp_path.rglob("*") if f.is_file())
    for file in written:
        assert (folder / file).read_bytes() == (tmp_path / file).read_bytes(), file
