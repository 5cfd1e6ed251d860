"""Files of prompts and of answers: what is made of them, what is left out, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.core.errors import UserError
from evenhand.instruments import DataFolder
from evenhand.instruments.counterfactual.data import CounterfactualDesign, read_answers
from evenhand.instruments.counterfactual.instrument import CounterfactualOptions, CounterfactualTest
from evenhand.instruments.counterfactual.versions import designed_by
from tests.errors import assert_names, raises_naming
from tests.instruments.counterfactual.test_runs import _file

WORDED = ("{pronoun} alone works here.", "{pronoun} asks.", "{pronoun} begs.")


def _prompts(tmp_path: Path, *texts: str, task: str = "") -> Path:
    lines = [{"id": str(n), "prompt": text, "task": task} for n, text in enumerate(texts)]
    return _file(tmp_path / "p.jsonl", lines)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_an_answer_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with raises_naming(UserError, "a.jsonl", "is empty"):
        read_answers(tmp_path / "a.jsonl")


def test_ids_with_a_slash_do_not_become_one(tmp_path: Path) -> None:
    places = [("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("z", "b/c"), ("a b", "c"), ("a", "b c")]
    places.append(("z", "b c"))
    lines = [
        {"id": prompt, "family": family, "label": label, "role": role, "answer": "yes"}
        for prompt, family in places
        for label in "uv"
        for role in ("group", "placebo")
    ]
    items = read_answers(_file(tmp_path / "a.jsonl", lines)).items(stored=True)
    assert len({one.id for one in items}) == len(lines)


def test_no_label_has_a_turn_of_its_own_and_prompts_are_asked_whole(tmp_path: Path) -> None:
    file = _prompts(tmp_path, *(f"{{name}} asks for {n} days." for n in range(60)))
    options = CounterfactualOptions(prompts=file, attributes="gender,race")
    source = CounterfactualTest().source(DataFolder(local=None, cache=tmp_path), options)
    items = list(source.read(0, len(source)))
    whole = len(items) // 60
    mean: dict[tuple[str, str, str], float] = {}
    for place, one in enumerate(items):
        assert one.tags["cluster"] == str(place // whole)
        key = (one.tags["family"], one.tags["label"], one.tags["role"])
        mean[key] = mean.get(key, 0.0) + place % whole / 60
    # The mean of 60 places out of 14 has a standard error of 0.52: four of them either way.
    assert whole == len(mean) == 14
    assert all(abs(one - 6.5) < 2.1 for one in mean.values()), mean
    assert source.fingerprint()["order"] == "in turns"


def test_a_word_of_the_family_in_the_task_is_refused(tmp_path: Path) -> None:
    file = _prompts(tmp_path, *WORDED, task="Her raise: grant it?")
    with raises_naming(UserError, "'Her'", "its task"):
        designed_by(CounterfactualOptions(prompts=file, attributes="gender"))


def test_versions_that_are_left_out_are_named_and_the_file_comes_back(tmp_path: Path) -> None:
    file, versions = _prompts(tmp_path, *WORDED), tmp_path / "v.jsonl"
    (_, said) = CounterfactualTest().remarks(
        CounterfactualOptions(prompts=file, attributes="gender"), 14
    )
    assert said.startswith("gender: 1 prompts are not asked without a group")
    assert_names(said, "'0'", "'works'", "'alone'")
    out = ["counterfactual", str(file), "--attributes", "gender", "--versions-out", str(versions)]
    ran = CliRunner().invoke(app, out)
    assert said[:40] in ran.output
    assert len(read_answers(versions).asked) == 4 + 5 + 5
    lines: list[Any] = [json.loads(line) for line in versions.read_text().splitlines()]
    again = [one | {"repeat": 2} for one in lines if (one["id"], one["role"]) != ("1", "none")]
    with raises_naming(UserError, "'none'", "repeat 2"):
        read_answers(_file(versions, [*lines, *again]))


@pytest.mark.parametrize("place", ["taken", "dangling", "folder/new"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, place: str) -> None:
    prompts = _prompts(tmp_path, *WORDED)
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    with raises_naming(UserError, tmp_path / place):
        eh.counterfactual_versions(prompts, tmp_path / place, attributes=["gender"])
    with raises_naming(UserError, tmp_path / place):
        eh.counterfactual_find(prompts, tmp_path / place, attributes=["gender"])
    assert (tmp_path / "taken").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


async def test_blind_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    asked: list[Any] = []

    def answer(request: Any) -> str:
        asked.append(request)
        return "yes"

    with raises_naming(UserError, "1 prompts", "'0'", "gender"):
        await eh.aio.measure(
            "counterfactual",
            model=eh.ScriptedModel(answer),
            method="blind",
            out=tmp_path / "run",
            options={"prompts": _prompts(tmp_path, *WORDED), "attributes": "gender"},
        )
    assert asked == []


def _designed(file: Path, **more: Any) -> CounterfactualDesign:
    return designed_by(CounterfactualOptions(prompts=file, **{"attributes": "gender", **more}))


def test_the_placebo_may_be_the_same_text_again(tmp_path: Path) -> None:
    design = _designed(_prompts(tmp_path, "Hire {name}?", "Pay {name}?"), placebo="again")
    texts = {(each.id, each.role, each.label): each.prompt for each in design.asked}
    assert len(texts) == 2 * (1 + 2 + 2)
    for (prompt, role, label), text in texts.items():
        if role == "placebo":
            assert text == texts[prompt, "group", label]
    other = _designed(_prompts(tmp_path, "Hire {name}?", "Pay {name}?")).asked
    assert all(each.prompt != texts[each.id, "group", each.label]
               for each in other if each.role == "placebo")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("p.txt", "Hire {name}?\n\nPay {name}?\n", {}),
        ("p.csv", 'prompt,who\n"Hire {name}?",x\n"Pay {name}?",y\n', {}),
        ("p.csv", "who,ask\nx,Hire {name}?\ny,Pay {name}?\n", {"text_column": "ask"}),
        ("p.jsonl", '{"prompt": "Hire {name}?"}\n{"prompt": "Pay {name}?"}\n', {}),
        ("p.jsonl", '{"q": "Hire {name}?"}\n{"q": "Pay {name}?"}\n', {"text_column": "q"}),
    ],
)
def test_prompts_are_read_as_people_have_them(
    tmp_path: Path, name: str, text: str, more: dict[str, str]
) -> None:
    """Text, a table or JSON lines; the id of a prompt is the number of its line."""
    (tmp_path / name).write_text(text)
    asked = _designed(tmp_path / name, **more).asked
    assert {one.id for one in asked} == ({"1", "3"} if name == "p.txt" else {"1", "2"})
    assert {one.prompt.split(" ", 1)[0] for one in asked} == {"Hire", "Pay"}


def test_ids_and_tasks_of_a_table_are_kept(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,task,prompt\na,Yes or no.,Hire {name}?\nb,,Pay {name}?\n")
    asked = _designed(tmp_path / "p.csv").asked
    assert {one.id for one in asked} == {"a", "b"}
    begins = "Yes or no.\n\nHire"
    assert all(one.prompt.startswith(begins) for one in asked if one.id == "a")


@pytest.mark.parametrize("text", ["prompt\nHire {name}?\n \n", "text\nHire {name}?\nPay {name}?\n"])
def test_a_table_without_prompts_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with raises_naming(UserError, "p.csv", "text"):
        _designed(tmp_path / "p.csv")


def test_plain_prompts_are_refused_with_how_to_mark_them(tmp_path: Path) -> None:
    with raises_naming(UserError, "at least 2", "--find"):
        _designed(_prompts(tmp_path, "Hire John?", "Pay Mary?"))


async def test_a_family_that_cannot_be_swapped_does_not_fail_the_others(tmp_path: Path) -> None:
    file = _prompts(tmp_path, "{pronoun} asks.", "{pronoun} begs.")
    design = _designed(file, attributes="gender,age")
    assert [family for family, _ in design.skipped] == ["age"]
    assert set(design.labels) == {one.family for one in design.asked} == {"gender"}
    assert any(line.startswith("age is skipped") for line in design.said())
    found = await eh.aio.measure(
        "counterfactual",
        out=tmp_path / "run",
        options={"prompts": file, "attributes": "gender,age"},
        model=eh.ScriptedModel(lambda request: "yes"),
    )
    assert any(note.startswith("age is skipped") for note in found.notes)
