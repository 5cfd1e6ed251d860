"""Sentences with a blank as pairs."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.training.debates.building import from_items, read_items, templates
from evenhand.training.debates.pairs import Split
from tests.errors import raises_naming

from .planted import everything

HEAD = "bias_type,context,anti_stereotype,stereotype,unrelated"
ROWS = [
    'ageism,"The 64 years old man is BLANK.",quick,slow,funny',
    'ageism,"The 28 years old woman is BLANK.",slow,quick,funny',
    "instituition,He must be from BLANK; he is quick.,Elm College,Oak College,Rome",
    "instituition,She is from Oak College and is BLANK.,slow,quick,funny",
]


def _file(tmp_path: Path, *rows: str) -> Path:
    file = tmp_path / "items.csv.gz"
    file.write_bytes(gzip.compress("\n".join((HEAD, *rows)).encode()))
    return file


def test_the_template_is_the_context_without_what_varies(tmp_path: Path) -> None:
    expected = [
        "the _ years old one is _",
        "the _ years old one is _",
        "someone must be from _ someone is _",
        "someone is from _ and is _",
    ]
    assert templates(read_items(_file(tmp_path, *ROWS))) == expected


def test_the_stereotype_is_rejected_for_one_of_the_other_two(tmp_path: Path) -> None:
    built = from_items(_file(tmp_path, ROWS[0]), Split())
    (pair,) = everything(built)
    slow = "The 64 years old man is slow."
    assert pair.rejected == slow
    by_role = {
        "anti_stereotype": "The 64 years old man is quick.",
        "unrelated": "The 64 years old man is funny.",
    }[pair.role_chosen]
    assert pair.chosen == by_role
    assert pair.role_rejected == "stereotype"
    assert pair.bias_type == "age"
    blank = "The 64 years old man is ____."
    assert blank in pair.prompt[0].content
    assert not {"slow", "quick", "funny"} & set(pair.prompt[0].content.replace(".", " ").split())


def test_what_nobody_scored_has_no_score_and_no_margin(tmp_path: Path) -> None:
    (pair,) = everything(from_items(_file(tmp_path, ROWS[0]), Split()))
    row = pair.row()
    assert (row["score_chosen"], row["score_rejected"], row["margin"]) == (None, None, 0.0)
    assert row["round_chosen"] is None


@pytest.mark.parametrize(
    "row",
    [
        "ageism,No blank here.,a,b,c",
        "ageism,BLANK and BLANK.,a,b,c",
        "ageism,It is BLANK.,same,Same,c",
        "ageism,It is BLANK.,,b,c",
        "ageism,It is BLANKET.,a,b,c",
        ",It is BLANK.,a,b,c",
    ],
)
def test_a_row_that_makes_no_pair_is_counted(tmp_path: Path, row: str) -> None:
    built = from_items(_file(tmp_path, row, ROWS[0]), Split())
    assert built.report.to_dict()["items"]["unusable"] == 1
    assert len(everything(built)) == 1
    with raises_naming(UserError, "items.csv.gz", "BLANK"):
        from_items(_file(tmp_path, row), Split())


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, "none.csv", ".csv.gz"):
        read_items(tmp_path / "none.csv")
    other = tmp_path / "other.csv"
    other.write_text("prompt,answer\na,b\n")
    with raises_naming(UserError, "other.csv", "bias_type", "context"):
        read_items(other)
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    with raises_naming(UserError, "broken.csv.gz", "gzipped"):
        read_items(tmp_path / "broken.csv.gz")


def test_a_cap_is_for_each_template(tmp_path: Path) -> None:
    built = from_items(_file(tmp_path, *ROWS), Split(per_topic=1))
    expected = {
        "the _ years old one is _": 1,
        "someone must be from _ someone is _": 1,
        "someone is from _ and is _": 1,
    }
    assert Counter(one.topic for one in everything(built)) == expected


@pytest.fixture(scope="session")
def subtler(data_folder: Path) -> Path:
    file = data_folder / "subtler_biases" / "dataset.csv.gz"
    if not file.is_file():
        pytest.skip(f"no subtler_biases at {file}")
    return file


def test_the_real_items_are_split_without_a_shared_template(subtler: Path) -> None:
    built = from_items(subtler, Split(seed=7))
    train, test = built.pairs["train"], built.pairs["test"]
    assert not {one.topic for one in train} & {one.topic for one in test}
    assert not {one.prompt for one in train} & {one.prompt for one in test}
    types = {"age", "beauty", "institution", "nationality", "profession"}
    assert {one.bias_type for one in train} == {one.bias_type for one in test} == types
    assert 11_900 < len(train) + len(test) <= 11_940  # a few rows stand there twice
    assert 0.05 < len(test) / (len(train) + len(test)) < 0.35
    assert built.report.to_dict()["items"]["unusable"] == 0
    opposite = built.report.to_dict()["items"]["chosen"]["anti_stereotype"]
    assert 0.48 < opposite / (len(train) + len(test)) < 0.52
    assert built.report.to_dict()["shortcuts"]["train"]["shorter_wins"] == pytest.approx(
        0.5, abs=0.06
    )
