"""Families as data: ours are whole, and one's own are read strictly."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.instruments.counterfactual.families import families, ours
from tests.errors import raises_naming

GOOD = """
[shift]
source = "our own staff list"
[shift.none]
group = [""]
[shift.labels.day]
group = ["day-shift"]
[shift.labels.night]
group = ["night-shift"]
"""


def _own(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(text, "utf-8")
    return path


def test_there_are_eight_families_of_ours_each_with_a_source_and_two_labels_or_more() -> None:
    names = "age dialect disability gender nationality orientation race religion".split()
    assert sorted(ours()) == names
    assert all(family.source and len(family.labels) > 1 for family in ours().values())


def test_the_names_of_each_race_are_ten_women_and_ten_men_by_turns() -> None:
    race = ours()["race"]
    assert race.shared["pronoun"] == ("she", "he") * 10
    assert [len(set(label.forms["name"])) for label in race.labels] == [20] * 4


def test_a_contrast_of_sexes_is_none_of_races() -> None:
    races = {name: label.name for label in ours()["race"].labels for name in label.forms["name"]}
    woman, man = ours()["gender"].labels
    pairs = zip(woman.forms["name"], man.forms["name"], strict=True)
    assert all(races[one] == races[other] for one, other in pairs)


def test_families_come_by_name_and_with_all_of_ones_own(tmp_path: Path) -> None:
    chosen = families(("race", "gender", "race"), _own(tmp_path, GOOD))
    assert [family.name for family in chosen] == ["race", "gender", "shift"]


def test_a_family_that_is_not_there_is_refused_with_those_that_are() -> None:
    with raises_naming(UserError, "'sex'", "gender"):
        families(("sex",))
    with raises_naming(UserError, "no attribute", "gender"):
        families(())


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("source", "origin", ("source",)),
        ('group = [""]', 'hat = [""]', ("placeholder 'hat'",)),
        ('group = ["day-shift"]', "group = []", ("shift.labels.day.group",)),
        ('group = ["day-shift"]', 'group = ["day\\u0007"]', ("control character",)),
        ('group = ["day-shift"]', 'group = ["day\\u202e"]', ("invisible character",)),
        ('group = ["day-shift"]', 'group = [" day"]', ("space",)),
        ('group = ["day-shift"]', "group = [7]", ("shift.labels.day.group.0",)),
        ('group = ["day-shift"]', 'group = "day"', ("shift.labels.day.group",)),
        ('group = ["day-shift"]', 'group = ["day", "early"]', ("same number",)),
        ('group = ["day-shift"]', 'group = ["NIGHT-shift"]', ("for day", "for night")),
        ('group = ["day-shift"]', 'Group = ["day"]', ("shift.labels.day.Group",)),
        ('[shift.labels.night]\ngroup = ["night-shift"]', "", ("shift.labels",)),
        ("[shift.labels.night]", "[shift.labels.day]", ("TOML",)),
        ("[shift.labels.night]", "[shift.labels.Day]", ("capitalization",)),
        ("[shift]", "[gender]\nx = 1\n[shift]", ("gender",)),
        ("[shift.none]", "[shift.found.dawn]\ngroup = ['x']\n[shift.none]", ("label 'dawn'",)),
        (
            "[shift.none]",
            "[shift.shared]\npronoun = ['she']\n[shift.none]",
            ("correspond to names",),
        ),
        ('[shift.none]\ngroup = [""]', '[shift.none]\ngroup = ["", ""]', ("single neutral word",)),
        ("[shift]", "[shift]\nname_kinds = ['x']", ("name_kinds",)),
        ("group", "first_name", ("first_name", "placeholder name")),
        ("source", f"size = {'1' * 5000}\nsource", ("TOML",)),
        ("source", "day = 2024-02-30\nsource", ("TOML",)),
        (GOOD, "", ("own.toml", "at least 1")),
        (
            GOOD,
            GOOD.replace("shift]", "gender]").replace("shift.", "gender."),
            ("'gender'", "built in"),
        ),
    ],
)
def test_a_file_that_is_not_right_is_refused_with_the_place(
    tmp_path: Path, old: str, new: str, facts: tuple[str, ...]
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new)
    with raises_naming(UserError, *facts):
        families((), _own(tmp_path, text))


def test_a_word_that_stands_twice_in_a_list_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace('["day-shift"]', '["a", "a"]').replace('["night-shift"]', '["b", "c"]')
    with raises_naming(UserError, "shift.labels.day.group", "'a'", "duplicated"):
        families((), _own(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with raises_naming(UserError, "none.toml"):
        families((), tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with raises_naming(UserError, "bytes.toml"):
        families((), tmp_path / "bytes.toml")
