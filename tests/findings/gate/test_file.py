"""The file of a gate: what it may say, and what is said of one that is wrong."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.experiments.gate_file import EXAMPLE, read
from tests.errors import raises_naming


def _read(folder: Path, text: str) -> str:
    (folder / "g.toml").write_text(text)
    with pytest.raises(UserError) as raised:
        read(folder / "g.toml")
    return str(raised.value)


def test_the_example_is_a_file_whose_three_checks_share_a_run(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(EXAMPLE)
    found = read(tmp_path / "g.toml")
    assert [one.measure.margin for one in found.checks] == [0.03, 0.05, 0.1]
    assert [EXAMPLE.splitlines()[one.line - 1][:9] for one in found.checks] == ["[[check]]"] * 3
    [run] = found.runs
    assert run.options == {}  # all templates: a small sample leaves an unchanged product open
    assert set(found.folders.values()) == {run.folder} == {"run-unsupported-answers-ambiguous"}


CHECK = '[[check]]\ninstrument = "bbq"\nmargin = 0.03\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "check: Field required; `evenhand gate --init"),
        ("check = 3", "`evenhand gate --init FILE` writes an example"),
        ("[[check]", "is not valid TOML"),
        (CHECK + "colour = 1", "check number 1: colour: Extra inputs are not permitted"),
        (CHECK.replace("0.03", "0"), "check number 1: margin: Input should be greater than 0"),
        (CHECK.replace("0.03", "nan"), "check number 1: margin"),
        (CHECK.replace("0.03", "1.0"), "allows everything"),
        (CHECK.replace("0.03", "1.5") + 'measure = "s_amb"', "can regress by at most 1"),
        (CHECK.replace("bbq", "stereoset") + 'measure = "icat"', "no measure 'icat' that a gate"),
        (CHECK.replace("bbq", "bbk"), "bbk"),
        (CHECK + 'measure = "nothing"', "has no measure 'nothing' that a gate can judge; it has:"),
        (
            CHECK + 'group = { colour = "red" }',
            "has no groups by 'colour'; it has: group, category",
        ),
        (CHECK + "options = { colour = 1 }", "bbq has no option 'colour'"),
        (CHECK + 'method = "none"', "none"),
        (CHECK + CHECK, "have the name 'bbq unsupported_attribution'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place_and_what_to_write(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in _read(tmp_path, text)


def test_a_file_that_is_not_there_is_said_with_the_command_that_writes_one(tmp_path: Path) -> None:
    with raises_naming(UserError, "none.toml", "--init FILE"):
        read(tmp_path / "none.toml")
