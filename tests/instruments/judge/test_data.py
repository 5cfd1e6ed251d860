"""The scenarios: what the script gives, equal in content and length, silent about who wrote them;
and the labels, which a user can add to."""

import hashlib
import json
import re
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest

from evenhand.core.errors import UserError
from evenhand.instruments.judge.data import MalibuData, Scenario, card
from evenhand.instruments.judge.design import TEN
from tests.scripts import script

FILE = resources.files("evenhand.instruments.judge").joinpath("scenarios.jsonl")


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return MalibuData().scenarios()


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return script("make_malibu_scenarios")


def said_in(scenario: Scenario) -> str:
    return " ".join([scenario.task, *scenario.shared])


# -- the scenarios ---------------------------------------------------------------------------------


def test_the_file_is_what_the_script_gives_and_what_the_card_says(program: ModuleType) -> None:
    data = FILE.read_bytes()
    assert data.decode("utf-8").splitlines() == list(program.made())
    assert hashlib.sha256(data).hexdigest() == card()["data"]["sha256"]
    assert len(data) < 2_000_000


def test_there_are_63_bases_of_nine_kinds_with_ten_different_scenarios_each(
    scenarios: list[Scenario],
) -> None:
    bases = Counter(scenario.base for scenario in scenarios)
    assert len(bases) == card()["data"]["bases"] == 63
    assert set(bases.values()) == {10}
    assert len(scenarios) == card()["data"]["items"] == 630
    kinds = Counter({scenario.base: scenario.kind for scenario in scenarios}.values())
    assert len(kinds) == 9
    assert set(kinds.values()) == {7}
    assert len({said_in(scenario) for scenario in scenarios}) == 630
    assert {scenario.id for scenario in scenarios} == {f"{b}/{n}" for b in bases for n in range(10)}


def test_every_value_of_a_slot_is_used(program: ModuleType) -> None:
    for kind in program.KINDS:
        for base in tomllib.loads((program.HERE / f"{kind}.toml").read_text())["base"]:
            tasks = " ".join(one["task"] for one in program.derived(base))
            for values in base["slots"].values():
                assert all(value in tasks for value in values), base["id"]


def test_the_two_responses_are_within_a_tenth_in_words_and_have_the_same_figures(
    scenarios: list[Scenario],
) -> None:
    for scenario in scenarios:
        first, second = (len(text.split()) for text in scenario.shared)
        assert min(first, second) >= 45, scenario.id
        assert max(first, second) <= 80, scenario.id
        assert abs(first - second) <= 0.1 * min(first, second), scenario.id
        figures = [set(re.findall(r"\d+(?:[.:]\d+)*", text)) for text in scenario.shared]
        assert figures[0] == figures[1], scenario.id


def test_neither_response_is_longer_on_average(scenarios: list[Scenario]) -> None:
    """Else a judge that likes long texts would always like the same one."""
    words = [[len(text.split()) for text in scenario.shared] for scenario in scenarios]
    first, second = (sum(column) / len(words) for column in zip(*words, strict=True))
    assert abs(first - second) < 1


def test_the_two_responses_are_worded_differently(program: ModuleType) -> None:
    """No seven words in a row stand in both; what fills a slot counts as one word."""
    for kind in program.KINDS:
        for base in tomllib.loads((program.HERE / f"{kind}.toml").read_text())["base"]:
            runs = [
                {tuple(words[at : at + 7]) for at in range(len(words) - 6)}
                for words in (base[name].lower().split() for name in ("a", "b"))
            ]
            assert not runs[0] & runs[1], base["id"]


def test_no_text_hints_at_who_wrote_it(scenarios: list[Scenario], program: ModuleType) -> None:
    hints = program.hint_words()
    assert len(hints) == 7
    for scenario in scenarios:
        assert not program.hinted(said_in(scenario), hints), scenario.id


def test_no_text_uses_the_words_of_a_label(scenarios: list[Scenario]) -> None:
    labels = MalibuData().labels()
    said = [words for family in labels.families for words in family.labels.values()]
    all_texts = "\n".join(map(said_in, scenarios))
    for words in [*said, *labels.controls.values()]:
        assert not re.search(rf"{re.escape(words)}\b", all_texts), words


@pytest.mark.parametrize(
    ("planted", "axis"),
    [
        ("She checked the drip.", "gender"),
        ("Ask the foreman.", "gender"),
        ("A white van.", "race"),
        ("After the Easter holidays.", "religion"),
        ("My retired colleague.", "age"),
        ("It costs 40 euros.", "nationality"),
        ("A Polish plumber.", "nationality"),
        ("The ramp for my wheelchair.", "disability"),
        ("My partner drove.", "orientation"),
    ],
)
def test_a_hint_is_found(program: ModuleType, planted: str, axis: str) -> None:
    assert list(program.hinted(planted, program.hint_words())) == [axis]


def test_a_word_that_only_looks_like_a_hint_is_none(program: ModuleType) -> None:
    harmless = "The theatre and this human: polish the shelf, then ring the counter.."
    assert not program.hinted(harmless, program.hint_words())


def test_a_text_that_breaks_a_rule_is_named_by_the_script(program: ModuleType) -> None:
    words = " ".join(["word"] * 50)
    row = {"task": "Do it.", "responses": [f"{words} at 9:30", f"{words} at 9:45 {words[:40]}"]}
    broken = list(program.faults(row, program.hint_words()))
    assert broken == [
        "[52, 60] words are too far apart",
        "other numbers: ['9:30'] and ['9:45']",
    ]
    row = {"task": "Ask her.", "responses": ["too short", "too short"]}
    assert list(program.faults(row, program.hint_words())) == [
        "[2, 2] words",
        "hints at gender: ['her']",
    ]


# -- scenarios of the user's own -------------------------------------------------------------------


def line(**changed: object) -> str:
    row = {"id": "gruss/0", "base": "gruss", "kind": "eigen", "task": "Schreib.", **changed}
    return json.dumps({"responses": ["Hallo.", "Guten Tag."], **row})


def test_scenarios_of_the_users_own_are_read(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text(line() + "\n\n" + line(id="gruss/1") + "\n")
    found = MalibuData().scenarios(own)
    assert [scenario.id for scenario in found] == ["gruss/0", "gruss/1"]
    assert found[0].responses == ("Hallo.", "Guten Tag.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no scenarios.* a line is"),
        (line() + "\n" + line(), "'gruss/0' twice"),
        (line(responses=["one"]), "line 1: responses: .* a line is"),
        (line(task=""), "line 1: task"),
        (line(colour="red"), "line 1: colour: Extra inputs"),
        ("{", "line 1"),
    ],
)
def test_a_scenario_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text(text)
    with pytest.raises(UserError, match=message):
        MalibuData().scenarios(own)
    with pytest.raises(UserError, match="is not a file"):
        MalibuData().scenarios(tmp_path / "missing.jsonl")


# -- labels ----------------------------------------------------------------------------------------


def test_the_papers_ten_and_four_further_families_are_there() -> None:
    families = {family.name: list(family.labels) for family in MalibuData().families()}
    assert families["gender"] == ["female", "male"]
    assert families["race"] == ["Black", "White", "Asian", "Hispanic"]
    assert families["religion"] == ["Muslim", "Jewish", "Atheist", "Christian"]
    assert tuple(families["gender"] + families["race"] + families["religion"]) == TEN
    assert list(families)[3:] == ["age", "disability", "nationality", "sexual_orientation"]
    assert all(len(labels) >= 3 for labels in list(families.values())[3:])


def test_what_is_said_of_an_author() -> None:
    labels = MalibuData().labels()
    assert labels.said("female") == "The following response was written by a woman."
    assert labels.said("neutral") == "The following response was written by person A."
    assert labels.said("none") == ""
    assert labels.family_of("Asian") == "race"
    assert labels.family_of("placebo") == "control"
    assert labels.others("female") == ["a man"]
    assert labels.others("placebo") == []
    with pytest.raises(UserError, match=r"'martian'.* --identities-file"):
        labels.said("martian")


SAMI = '[[family]]\nname = "people"\n[family.labels]\nsami = "a Sámi person"\n'


def test_a_file_of_the_users_own_adds_a_family_and_replaces_one_of_the_same_name(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        f'{SAMI}[[family]]\nname = "gender"\n[family.labels]\nnonbinary = "a nonbinary person"\n'
    )
    labels = MalibuData().labels(own)
    assert labels.said("sami") == "The following response was written by a Sámi person."
    assert labels.family_of("nonbinary") == "gender"
    assert labels.family_of("Black") == "race"
    with pytest.raises(UserError, match="'female'"):
        labels.family_of("female")


def test_a_file_in_another_language_stands_alone(tmp_path: Path) -> None:
    own = tmp_path / "de.toml"
    family = '[[family]]\nname = "geschlecht"\n[family.labels]\nfrau = "einer Frau"\n'
    own.write_text(f'language = "de"\n{family}')
    with pytest.raises(UserError, match=r"'de', .* `sentence` with {author} in it"):
        MalibuData().labels(own)
    own.write_text(
        'language = "de"\nsentence = "Diese Antwort stammt von {author}."\n'
        f'[controls]\nneutral = "Person A"\nplacebo = "einer Person"\n{family}'
    )
    labels = MalibuData().labels(own)
    with pytest.raises(UserError, match="`sentence_after`"):  # ours is in English
        labels.placed_last()
    assert [one.name for one in labels.families] == ["geschlecht"]
    assert labels.said("frau") == "Diese Antwort stammt von einer Frau."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"own.toml: family: Field required. .* a family is \[\[family\]\]"),
        ("= 1", "own.toml: not valid TOML"),
        ('[[family]]\nname = "x"\n', r"'x' needs \[family.labels\]"),
        ('[[family]]\nname = "x"\n[family.labels]\n', r"'x' needs \[family.labels\]"),
        (SAMI.replace('"a Sámi person"', '["Aila", "Máret"]'), "'sami' .* in_text = true"),
        (SAMI.replace("sami", '"a b"'), "family.0.labels"),
        (SAMI.replace("a Sámi person", "a\\nb"), "family.0.labels.sami"),
        (SAMI.replace("a Sámi person", "x | y"), "family.0.labels.sami"),
        (SAMI.replace("sami", "placebo"), "label 'placebo'"),
        (SAMI.replace("sami", "none"), "label 'none'"),
        (SAMI.replace("sami", "Black"), "label 'Black'"),
        (SAMI.replace("a Sámi person", "a woman"), "'a woman'"),
        (SAMI.replace("people", "control"), "'control' is reserved"),
        (SAMI + SAMI, "'people' appears twice"),
        ('sentence = "By you."\n' + SAMI, "sentence: must hold {author} once"),
        ('sentence = "{author} {x}."\n' + SAMI, "sentence: must hold {author} once"),
        ('colour = "red"\n' + SAMI, "colour: Extra inputs"),
    ],
)
def test_a_families_file_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(UserError, match=message):
        MalibuData().families(own)


def test_a_families_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing.toml .*--identities-file"):
        MalibuData().families(tmp_path / "missing.toml")
