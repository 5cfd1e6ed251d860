"""DiscrimEval: the set recounted, the versions of a question, and whole audits of scripted apps."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.core.errors import UserError
from evenhand.instruments import DataFolder
from evenhand.instruments.discrim_eval.instrument import (
    LABELS,
    TASK,
    Texts,
    design,
    sound,
    tells_age,
    texts,
    two_people,
    versions,
    without,
)
from evenhand.models import ModelRequest
from tests.coded import codes
from tests.errors import raises_naming
from tests.stage import words_of


@pytest.fixture(scope="module")
def data(data_folder: Path) -> DataFolder:
    if not (data_folder / "discrim_eval").is_dir():
        pytest.skip(f"no DiscrimEval at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=Path("none"))


@pytest.fixture(scope="module")
def known(data: DataFolder) -> Mapping[int, Texts]:
    return texts(data)


def test_every_question_has_every_profile_once(known: Mapping[int, Texts]) -> None:
    """70 questions × 9 ages × 3 genders × 5 races are the 9,450 rows of the card."""
    profiles = set(product(*LABELS.values()))
    assert len(profiles) == 135
    assert [set(one) for one in known.values()] == [profiles] * 70
    assert sum(map(len, known.values())) == 9450


def test_nearly_every_text_says_its_profile_and_question_71_does_not(
    known: Mapping[int, Texts],
) -> None:
    odd = Counter(number for number, one in known.items() for profile, text in one.items()
                  if not sound(text, profile))  # fmt: skip
    assert sum(tells_age(text) for one in known.values() for text in one.values()) == 773
    assert odd.total() == 179
    assert odd.pop(71) == 114
    assert max(odd.values()) == 3


def test_a_design_holds_labels_against_labels_on_equal_people(data: DataFolder) -> None:
    """Of each of 69 questions, and of 63 for the age: two people under each label, and one without.
    The two differ in both other attributes, and all that are asked under one role share them."""
    found = design(data, "race,age,gender", questions=70, seed=3)
    refused = {family: {q for q, name, _ in found.refused if name == family} for family in LABELS}
    other_words = {"3", "9", "19", "36", "75", "81"}  # "retired", "given her age", "while young" …
    assert refused == {"race": {"71"}, "gender": {"71"}, "age": {"71", *other_words}}
    assert not found.never_without
    asked = Counter((one.family, one.role) for one in found.asked)
    assert asked == {
        (family, role): (70 - len(refused[family])) * count
        for family, labels in LABELS.items()
        for role, count in (("group", len(labels)), ("placebo", len(labels)), ("none", 1))
    }
    profile_of = {text: (number, profile) for number, one in texts(data).items()
                  for profile, text in one.items()}  # fmt: skip
    people: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    for one in found.asked:
        if one.role != "none":
            number, profile = profile_of[one.prompt.partition("\n\n")[2]]
            own = profile[list(LABELS).index(one.family)]
            assert (str(number), own) == (one.id, one.label)
            rest = tuple(part for part in profile if part != own)
            people.setdefault((one.id, one.family, one.role), set()).add(rest)
    assert all(len(each) == 1 for each in people.values())
    for (question, family, role), each in people.items():
        if role == "group":
            (first,), (second,) = each, people[question, family, "placebo"]
            assert not set(first) & set(second)


def test_a_remedy_speaks_of_the_person_whom_it_answers(data: DataFolder) -> None:
    """Two people of a question share neither age nor gender. The words without a race that an item
    carries, for `blind` and among those of `averaged`, are its own person's."""

    def person(text: str) -> set[str]:
        return set(re.findall(r"\b(\d+)[\s-]*year", text)[:1])

    items = design(data, "race", questions=12, seed=2).items(stored=False, decision="(yes|no)")
    assert {item.tags["role"] for item in items} == {"none", "group", "placebo"}
    for item in items:
        carried = json.loads(item.tags["versions"])["texts"]
        assert len(carried) == (1 if item.tags["role"] == "none" else 6)
        assert item.tags["without_label"] == carried[0]
        for text in carried:
            assert person(text) == person(item.prompt)
            assert text.startswith(TASK)


def test_the_version_without_a_label_says_none(data: DataFolder) -> None:
    """By a second route: none of the family's words is left in any of them."""
    words = {
        "age": r"year-? ?old|elderly|young|retired|retiree|old|senior|(her|his|their) age",
        "gender": "binary|male|she|he",
        "race": "|".join(LABELS["race"]),
    }
    for one in design(data, "race,age,gender", questions=70, seed=1).asked:
        if one.role == "none":
            assert not re.search(rf"\b({words[one.family]})\b", one.prompt, re.IGNORECASE)


@pytest.mark.parametrize(
    ("family", "text", "left"),
    [
        ("age", "a(n) 80-year-old Asian male", "an Asian male"),
        ("age", "owned by a100-year-old Black man", "owned by a Black man"),
        ("age", "An 80 year old white woman", "A white woman"),
        ("race", "a 20-year-old white, female owner", "a 20-year-old female owner"),
        ("race", "an Asian man", "a man"),
        ("race", "The Native American applicant", "The applicant"),
        (
            "gender",
            "It is a 30-year-old Asian non-binary. So",
            "It is a 30-year-old Asian person. So",
        ),
        ("gender", "a 30-year-old non-binary Black person", "a 30-year-old Black person"),
    ],
)
def test_a_label_is_taken_out_and_the_article_agrees(family: str, text: str, left: str) -> None:
    assert without(text, family) == left


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("a 20-year-old woman who helped to raise younger siblings for many years", False),
        ("a 20-year-old man; this young person", True),
        ("a 90-year-old retiree", True),
        ("an 80-year-old man, fit for his age", True),
        ("a 30-year-old man returns a lamp, due to its age", False),
        ("a 30-year-old inventor of a device based on older techniques", False),
    ],
)
def test_a_text_that_tells_the_age_in_other_words_is_known(text: str, tells: bool) -> None:
    assert tells_age(text) is tells


def test_a_text_with_a_slip_is_asked_of_nobody() -> None:
    """Of one gender and age the race is misspelt: that person is in no version of the race."""
    made = {
        (age, gender, race): f"A {age}-year-old {gender} {race} tenant asks for a lease."
        for age, gender, race in product(*LABELS.values())
    }
    profile = ("20", "male", "Hispanic")
    assert sound(made[profile], profile)
    made[profile] = made[profile].replace("Hispanic", "Hispanix")
    assert not sound(made[profile], profile)
    for seed in range(80):
        found = versions(two_people(made, "race", str(seed)), "race")
        assert isinstance(found, tuple)
        assert not any("20-year-old male" in text for _, _, text in found[0])


def test_a_family_that_the_set_does_not_have_is_refused(data: DataFolder) -> None:
    with raises_naming(UserError, "age, gender, race", "'religion'", "--attributes"):
        design(data, "race,religion", questions=2, seed=0)


def _decides(request: ModelRequest) -> str:
    """Black people get a no, unless the app was told to treat people alike; nobody else does."""
    words = words_of(request)
    return (
        "No." if re.search(r"\bblack\b", words, re.IGNORECASE) and "alike" not in words else "Yes."
    )


@pytest.mark.usefixtures("data")
async def test_a_model_that_denies_one_race_is_found_and_two_remedies_are_compared(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_DATA", str(data_folder))
    found = {
        method: await eh.aio.measure(
            "discrim_eval",
            model=eh.ScriptedModel(_decides),
            method=method,
            out=tmp_path / method,
            options={"questions": 12, "attributes": "race"},
        )
        for method in ("default", "fairness", "blind")
    }
    table = found["default"].section("effects")
    assert table is not None
    rows = {row[1]: (row[2], row[-1]) for row in table.rows}
    # Black is paired with some other label wherever it does not stay alone.
    assert rows["Black − another"] == ("-100.0", "detected")
    assert found["default"].verdict.state == "detected"
    assert any("adjusted effect" in note and "negative" in note for note in found["default"].notes)
    for remedy in ("fairness", "blind"):
        assert found[remedy]["excess"].value == 0.0
        diff = eh.compare(tmp_path / "default", tmp_path / remedy)
        assert "comparison.better" in codes(diff.verdict.says)
