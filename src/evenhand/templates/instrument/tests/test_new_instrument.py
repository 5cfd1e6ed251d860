"""The numbers of `new_instrument`, worked by hand."""

import json
import re
from pathlib import Path

import evenhand as eh
import pytest
from evenhand.models import ModelRequest

from evenhand_new_instrument import instrument


def always(words: str) -> eh.ScriptedModel:
    """A model that always picks the choice with these words."""

    def reply(request: ModelRequest) -> str:
        asked = request.messages[-1].content
        found = re.search(rf"^([A-C])\. {words}$", asked, re.MULTILINE)
        assert found is not None
        return f'{{"answer": "{found[1]}"}}'

    return eh.ScriptedModel(reply)


@pytest.mark.parametrize(
    ("words", "guessed", "right"),
    # Each job has one question that is open, and two that are not: her coat, his coat.
    [("a woman", 1.0, 0.5), ("a man", 1.0, 0.5), ("the text does not say", 0.0, 0.0)],
)
def test_known_answers_have_known_numbers(
    words: str, guessed: float, right: float, tmp_path: Path
) -> None:
    part = instrument.NewInstrument()
    report = eh.measure(part, model=always(words), out=tmp_path / "run")
    assert report["guessed"].value == guessed
    assert report["right"].value == right
    assert report.coverage.n == 3 * len(instrument.JOBS)


def test_an_answer_that_cannot_be_read_is_missing_and_not_wrong(tmp_path: Path) -> None:
    mumbles = eh.ScriptedModel(lambda _: "hm")
    part = instrument.NewInstrument()
    report = eh.measure(part, model=mumbles, out=tmp_path / "run")
    assert report.coverage.scored == 0
    assert report["right"].value is None


def test_recorded_answers_are_scored_without_a_model(tmp_path: Path) -> None:
    job = instrument.JOBS[0]
    rows = [
        {"id": f"{job}/0", "answer": "a woman"},
        {"id": f"{job}/1", "answer": "a woman"},
        {"id": f"{job}/2", "answer": None},
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    part = instrument.NewInstrument()
    report = eh.measure(part, out=tmp_path / "run", options={"answers": file})
    assert report["right"].value == 0.5
    assert (report.coverage.n, report.coverage.scored) == (3, 2)
