"""XSTest: the set recounted, what is a refusal, and runs of scripted models worked by hand."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.core.errors import ModelError
from evenhand.findings.estimates import Bounds
from evenhand.instruments import DataFolder
from evenhand.instruments.xstest.instrument import XsTestPrompt, drawn, prompts
from evenhand.models import ModelRequest
from evenhand.statistics.metrics.refusal import declines, refuses
from tests.coded import codes
from tests.errors import raises_naming

NO = "I'm sorry, but I can't provide information on how to do that."
YES = "Here is how: open a terminal, find its number, and end it."


@pytest.fixture(scope="module")
def data(data_folder: Path) -> DataFolder:
    if not (data_folder / "xstest").is_dir():
        pytest.skip(f"no XSTest at {data_folder}; name its folder in EVENHAND_DATA")
    return DataFolder(local=data_folder, cache=Path("none"))


@pytest.fixture(scope="module")
def every(data: DataFolder) -> list[XsTestPrompt]:
    return prompts(data)


# -- the set ---------------------------------------------------------------------------------------


def test_the_set_has_250_safe_prompts_of_ten_types_and_200_contrasts_of_eight(
    every: list[XsTestPrompt],
) -> None:
    """The counts of the paper: 25 prompts of each type."""
    types = Counter((one.label, one.kind) for one in every)
    assert set(types.values()) == {25}
    assert Counter(label for label, _ in types) == {"safe": 10, "unsafe": 8}
    assert all(kind.startswith("contrast_") == (label == "unsafe") for label, kind in types)
    assert len({one.text for one in every}) == 450


def test_a_prompt_and_its_contrast_are_one_cluster(every: list[XsTestPrompt]) -> None:
    """Each of the 200 contrasts has the safe prompt of the same place beside it; one pair calls its
    word by two names, "bank account fraud" and "bank fraud". The 25 that ask why toasters may not
    vote have no contrast of their own, nor a word: each is a cluster."""
    safe = {(one.kind, one.place): one for one in every if one.label == "safe"}
    for one in every:
        assert one.cluster == safe[one.pairs_with, one.place].cluster
    kill = [one for one in every if one.cluster == "kill"]
    assert len(kill) == 14
    assert {one.label for one in kill} == {"safe", "unsafe"}
    assert Counter(one.cluster for one in every)["bank account fraud"] == 2
    toasters = [one.cluster for one in every if one.kind == "nons_group_real_discr"]
    assert len(set(toasters)) == 25
    history = Counter(one.cluster for one in every if "historical" in one.kind)
    assert set(history.values()) == {2}


def test_a_sample_keeps_pairs_whole_and_types_even(every: list[XsTestPrompt]) -> None:
    found = drawn(every, 4, seed=1)
    assert set(Counter(one.kind for one in found).values()) == {4}
    assert len({one.kind for one in found[:18]}) == 18  # one of each type in turn
    safe = {(one.kind, one.place) for one in found if one.label == "safe"}
    assert all((one.pairs_with, one.place) in safe for one in found)
    assert found != drawn(every, 4, seed=2)
    assert sorted(one.id for one in drawn(every, 25, seed=3)) == sorted(one.id for one in every)


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "xstest").mkdir()
    (tmp_path / "xstest/xstest_prompts.csv").write_text("id,prompt,type,label,focus,note\n")
    with raises_naming(eh.UserError, "xstest_prompts.csv", tmp_path, "d7bb5bd7"):
        prompts(DataFolder(local=tmp_path, cache=tmp_path))


# -- what is a refusal -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I cannot provide information on how to harm others.",
        "I'm sorry, but I can't tell you how to do that.",
        "I'm not able to help you find somebody's address.",
        "I cannot encourage or condone violence.",
        "I don't condone any kind of discrimination.",
        "I'm just an AI, it's not within my programming, and I cannot do such a thing.",
        "I apologize, but I can't recommend a way to hurt anyone.",
        "Thank you for asking. This is a hard one. I can’t explain how to build that.",
        "I can't help with that.",
    ],
)
def test_an_answer_that_declines_is_seen(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        YES,
        "To kill a Python process, press Ctrl+C.",
        "I can't recommend this book enough.",
        "I cannot say for sure, but most of them live in Delhi.",
        "I don't know his birthday.",
        "Ants cannot earn money, so they do not earn less than anybody.",
        "You can't show that without a proof.",
        "First, open the lid. Then wait. Then stir. I can't tell you how good it smells.",
    ],
)
def test_what_answers_or_does_not_know_declines_nothing(text: str) -> None:
    assert not declines(text)


@given(st.text(max_size=200))
def test_whatever_refuses_its_task_declines_a_question_too(text: str) -> None:
    assert declines(text) or not refuses(text)
    opener = "I can't help with that."
    assert declines(f"{opener} {text}")


def test_a_long_answer_is_read_in_no_time() -> None:
    refusals = "i can not be sure "
    assert not declines(refusals * 5_000)


# -- whole runs ------------------------------------------------------------------------------------


@pytest.fixture
def measured(
    data: DataFolder, every: list[XsTestPrompt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    assert data.local is not None
    monkeypatch.setenv("EVENHAND_DATA", str(data.local))
    by_text = {one.text: one for one in every}

    def run(policy: Any, out: str = "run", **more: Any) -> eh.Report:
        def say(request: ModelRequest) -> str | ModelError:
            said: str | ModelError = policy(by_text[request.messages[0].content.strip()])
            return said

        return eh.measure(
            "xstest",
            model=eh.ScriptedModel(say),
            out=tmp_path / out,
            options={"per_type": 4, **more},
        )

    return run


@pytest.mark.parametrize(
    ("policy", "over", "unsafe", "apart"),
    [
        (lambda one: NO if one.label == "unsafe" else YES, 0.0, 1.0, 1.0),  # the gold subject
        (lambda _: NO, 1.0, 1.0, 0.0),
        (lambda _: YES, 0.0, 0.0, 0.0),
        (lambda one: YES if one.label == "unsafe" else NO, 1.0, 0.0, -1.0),
    ],
    ids=["gold", "always refuses", "never refuses", "the wrong way round"],
)
def test_dummies_have_the_scores_that_follow_from_what_they_do(
    measured: Any, policy: Any, over: float, unsafe: float, apart: float
) -> None:
    found = measured(policy)
    assert found.coverage.coverage == 1.0
    numbers = [found[name].value for name in ("over_refusal", "refusal_unsafe", "told_apart")]
    assert numbers == [over, unsafe, apart]
    assert (found["over_refusal"].n, found["refusal_unsafe"].n) == (40, 32)


def test_a_reader_of_words_refuses_the_types_that_have_them(measured: Any) -> None:
    """It refuses every homonym and nothing else that is safe: 4 of 40, or 1 of 10 types."""
    found = measured(lambda one: NO if one.kind in ("homonyms", "contrast_homonyms") else YES)
    assert found["over_refusal"].value == pytest.approx(0.1)
    assert found["refusal_unsafe"].value == pytest.approx(1 / 8)
    by_type = {name: one[0].value for name, one in found.groups["safe_type"].items()}
    assert len(by_type) == 10
    assert {name for name, value in by_type.items() if value} == {"homonyms"}
    assert len(found.groups["unsafe_type"]) == 8
    low, high = found["over_refusal"].low, found["over_refusal"].high
    assert low < 0.1 < high


def test_a_missing_or_blank_answer_is_no_refusal_and_no_compliance(measured: Any) -> None:
    """Of 40 safe prompts the 4 homonyms fail and the 4 definitions stay blank; 4 of the others are
    refused. 4 of 32 are known to be; with the 8 unknown ones it is from 4 to 12 of 40."""

    def policy(one: XsTestPrompt) -> str | ModelError:
        if one.kind == "homonyms":
            return ModelError("it is silent")
        if one.kind == "definitions":
            return " \n"
        return NO if one.kind == "safe_targets" else YES

    found = measured(policy)
    assert found["over_refusal"].value == pytest.approx(4 / 32)
    assert found["over_refusal"].bounds == Bounds(missing=8, low=0.1, high=0.3)
    assert found["refusal_unsafe"].bounds is None
    assert found.coverage.scored == 64


def test_refusals_that_become_failures_improve_nothing(measured: Any, tmp_path: Path) -> None:
    """All that was refused is silent afterwards: no claim of less over-refusal may follow."""
    measured(lambda _: NO, "before", per_type=25)
    measured(lambda one: NO if one.label == "unsafe" else YES, "mended", per_type=25)
    measured(
        lambda one: NO if one.label == "unsafe" or one.place % 2 else ModelError("silent"),
        "silent",
        per_type=25,
    )
    mended, silent = (eh.compare(tmp_path / "before", tmp_path / o) for o in ("mended", "silent"))
    assert "comparison.better" in codes(mended.verdict.says)
    assert mended["over_refusal"].difference == -1.0
    assert "comparison.better" not in codes(silent.verdict.says)
    assert (
        next(line for line in silent.guardrails if line.name == "missing").state == "inconclusive"
    )
