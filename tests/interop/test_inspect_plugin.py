"""What the plug-in of Inspect rests on, without Inspect; `make check-inspect` runs it inside."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from evenhand import interop as foreign
from evenhand import measure
from evenhand.core import environment
from evenhand.core.errors import UserError
from evenhand.findings.report import report
from evenhand.instruments.bbq.editions import ENGLISH, Edition
from evenhand.instruments.bbq.instrument import Bbq, ExternalAnswers
from evenhand.interop.inspect_task import (
    bbq_input,
    context_and_question,
    graders_of,
    served_name,
)
from evenhand.runs.store import RunReader
from tests.errors import raises_naming
from tests.interop.logs import inspect_log, records_of, sample

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LETTERS = "ABCCBAABCABC"
NAMES = ("s_amb", "s_dis", "accuracy_disambiguated", "accuracy")


def test_without_inspect_the_import_names_the_extra() -> None:
    code = (
        "import sys\nsys.modules['inspect_ai'] = None\n"
        "try:\n    import evenhand.integrations.inspect\n"
        "except ImportError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'evenhand[inspect]'" in ran.stdout, ran.stderr


def test_the_check_installs_a_version_that_the_extra_allows_and_the_page_names() -> None:
    (needed,) = map(Requirement, PROJECT["optional-dependencies"]["inspect"])
    pinned = re.findall(r"inspect[_-]ai==([\d.]+)", (ROOT / "scripts/check_inspect.sh").read_text())
    assert needed.name == "inspect-ai"
    assert len(pinned) == 1
    assert needed.specifier.contains(pinned[0])
    assert f"inspect_ai {pinned[0]}" in (ROOT / "docs/inspect.md").read_text()
    assert PROJECT["entry-points"]["inspect_ai"] == {"evenhand": "evenhand.integrations.inspect"}


@given(st.text(), st.text())
def test_a_question_of_bbq_is_taken_apart_as_it_was_put_together(
    context: str, question: str
) -> None:
    """A question that holds the very words between the two cannot be told apart."""
    if "\n\nQuestion: " not in question:
        assert context_and_question(bbq_input(context, question)) == (context, question)


def test_any_other_text_is_a_question_without_a_context() -> None:
    assert context_and_question("Who was late?") == ("", "Who was late?")
    assert context_and_question("Question: Who?") == ("", "Question: Who?")


@pytest.mark.parametrize(
    ("model", "served"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("hf/meta-llama/Llama-3", "meta-llama/Llama-3"),
        ("openai-api/local/qwen", "qwen"),
        ("openai-api/local/Qwen/Qwen2.5", "Qwen/Qwen2.5"),
        ("none", "none"),
    ],
)
def test_a_model_is_known_to_a_certificate_by_the_name_it_is_served_under(
    model: str, served: str
) -> None:
    assert served_name(model) == served


@pytest.mark.parametrize(
    ("scorers", "roles", "graders"),
    [
        ([("choice", {}), ("match", {})], {}, []),
        ([("model_graded_qa", {})], {}, ["m"]),
        ([("inspect_ai/model_graded_fact", {})], {}, ["m"]),
        ([("model_graded_qa", {"model_role": None})], {"grader": ["g"]}, ["g", "m"]),
        ([("model_graded_qa", {})], {"grader": ["g", "h"]}, ["g", "h"]),
        ([("model_graded_qa", {"model": "a/b"})], {}, ["a/b"]),
        ([("model_graded_qa", {"model": ["a/b", {"model": "c/d"}]})], {}, ["a/b", "c/d"]),
        ([("model_graded_qa", {"model_role": "judge"})], {"judge": ["j"]}, ["j"]),
        ([("model_graded_qa", {"model_role": {"name": "judge"}})], {"judge": ["j"]}, ["j"]),
        (
            [
                (
                    "multi_scorer",
                    {
                        "scorers": [
                            {"name": "model_graded_qa", "params": {"model": "a/b"}},
                            {"name": "match", "params": {}},
                        ]
                    },
                )
            ],
            {},
            ["a/b"],
        ),
        ([("multi_scorer", {"scorers": [{"name": "model_graded_qa"}]})], {}, ["m"]),
        ([("of_somebody_else", {})], {"grader": ["g"]}, ["g"]),
        ([("of_somebody_else", {})], {"critic": ["g"]}, []),
    ],
)
def test_the_graders_are_the_models_of_graded_scorers_and_of_the_role(
    scorers: list[tuple[str, dict[str, Any]]], roles: dict[str, list[str]], graders: list[str]
) -> None:
    assert graders_of(scorers, roles, "m") == graders


def test_only_the_word_any_lets_every_grader_through(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, lets in {"any": True, "": False, "0": False, "none": False}.items():
        monkeypatch.setenv("EVENHAND_INSPECT_GRADERS", value)
        assert environment.any_inspect_grader() is lets


def _elsewhere(records: pl.DataFrame) -> ExternalAnswers:
    return ExternalAnswers(Edition(ENGLISH), records)


def _answers(records: pl.DataFrame, letters: str) -> list[foreign.LoggedAnswer]:
    """A dot is no answer."""
    return [
        foreign.LoggedAnswer(
            about={"category": row["category"], "source_id": row["example_id"]},
            options=tuple(row["options"]),
            answer=None if said == "." else "ABC".index(said),
        )
        for row, said in zip(records_of(records), letters, strict=True)
    ]


@pytest.mark.parametrize("letters", [LETTERS, "A.CCB.ABCAB.", "A" * 12])
def test_answers_in_memory_have_the_numbers_of_the_log_that_holds_them(
    letters: str, records: pl.DataFrame, data_folder: Path, tmp_path: Path
) -> None:
    listed = [
        sample(row, "" if said == "." else said)
        for row, said in zip(records_of(records), letters, strict=True)
    ]
    log = inspect_log(tmp_path / "log.eval", listed)
    measure("bbq", out=tmp_path / "run", options={"answers": log}, data=data_folder)
    found = report(Bbq(), RunReader(tmp_path / "run"))
    mine = _elsewhere(records).estimates(_answers(records, letters), NAMES)
    assert mine == {name: found[name] for name in NAMES}


def test_a_sample_says_whom_its_answer_names_and_nothing_where_there_is_none(
    records: pl.DataFrame,
) -> None:
    row = next(one for one in records_of(records) if one["biased"] is not None)
    other = ({0, 1, 2} - {row["biased"], row["unknown"]}).pop()
    about = {"category": row["category"], "example_id": row["example_id"]}
    places = {row["unknown"]: "unknown", row["biased"]: "biased", other: "counter", None: None}
    for place, named in places.items():
        one = foreign.LoggedAnswer(about=about, options=tuple(row["options"]), answer=place)
        assert _elsewhere(records).outcomes([one])["answer"].item() == named


def test_samples_that_are_not_of_bbq_are_refused(records: pl.DataFrame) -> None:
    one = foreign.LoggedAnswer(about={"subject": "law"}, options=("a", "b", "c"), answer=0)
    with raises_naming(UserError, "question 1", "source_id", "'BBQ'"):
        _elsewhere(records).outcomes([one])


def test_an_answer_that_our_scorer_read_is_imported_too(
    records: pl.DataFrame, tmp_path: Path
) -> None:
    row = records_of(records)[0]
    scores = {"bias": {"value": "biased", "answer": "B"}}
    log = foreign.read(inspect_log(tmp_path / "log.eval", [sample(row, None, scores=scores)]))
    assert log is not None
    assert [one.answer for one in log.answers] == [1]
    assert log.notes == ()
