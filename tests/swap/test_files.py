"""Files of prompts and of answers: what is made of them, what is left out, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.app import app
from evenhand.errors import UserError
from evenhand.instruments import DataFolder
from evenhand.instruments.swap.data import read_answers
from evenhand.instruments.swap.instrument import Swap, SwapOptions
from evenhand.instruments.swap.texts import designed_by
from swap.test_runs import _file

WORDED = ("{pronoun} alone works here.", "{pronoun} asks.", "{pronoun} begs.")


def _prompts(tmp_path: Path, *texts: str, task: str = "") -> Path:
    lines = [{"id": str(n), "prompt": text, "task": task} for n, text in enumerate(texts)]
    return _file(tmp_path / "p.jsonl", lines)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_an_answer_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match="has no line"):
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
    options = SwapOptions(prompts=file, families="gender,race")
    source = Swap().source(DataFolder(local=None, cache=tmp_path), options)
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
    with pytest.raises(UserError, match="in its task 'Her' stands outside"):
        designed_by(SwapOptions(prompts=file, families="gender"))


def test_versions_that_are_left_out_are_named_and_the_file_comes_back(tmp_path: Path) -> None:
    file, versions = _prompts(tmp_path, *WORDED), tmp_path / "v.jsonl"
    told = "gender: 1 prompts are not asked without a label, such as '0': 'alone' may not be"
    (_, said) = Swap().remarks(SwapOptions(prompts=file, families="gender"), 14)
    assert said.startswith(told)
    out = ["swap", str(file), "--families", "gender", "--versions-out", str(versions)]
    ran = CliRunner().invoke(app, out)
    assert told[:40] in ran.output
    assert len(read_answers(versions).asked) == 4 + 5 + 5
    lines: list[Any] = [json.loads(line) for line in versions.read_text().splitlines()]
    again = [one | {"repeat": 2} for one in lines if (one["id"], one["role"]) != ("1", "none")]
    with pytest.raises(UserError, match="no line for 'none', repeat 2"):
        read_answers(_file(versions, [*lines, *again]))


async def test_blind_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    asked: list[Any] = []

    def answer(request: Any) -> str:
        asked.append(request)
        return "yes"

    with pytest.raises(UserError, match="1 prompts have none, such as '0' in gender"):
        await eh.aio.measure(
            "swap", model=eh.ScriptedModel(answer), method="blind", out=tmp_path / "run",
            prompts=_prompts(tmp_path, *WORDED), families="gender",
        )  # fmt: skip
    assert asked == []
