"""The reader of the notebooks of MABRF's authors, on a notebook of our own in their form."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import script

ENTRY = """Init → Bias=1 (Nothing.
It says so.), Rel=10 (It fits.), Pred={first}, True={gold}

--- Termination Agent (final pass) ---
Final Answer: {last}
Match with original label? False

=== Summary ===
Solver Prediction: 2
Processed {number}/110 rows → appended to /content/x.csv
"""


@pytest.fixture
def reader() -> ModuleType:
    return script("mabrf_log")


def _notebook(folder: Path, entries: list[str]) -> Path:
    def code(source: str, *text: str) -> dict[str, object]:
        return {"cell_type": "code", "source": [source], "outputs": [{"text": list(text)}]}

    cells = [
        {"cell_type": "markdown", "source": ["# Results"]},
        code('llm = ChatOpenAI(model="gpt-4", temperature=0)'),
        code("for row in rows: answer(row)", *entries),
    ]
    file = folder / "log.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    return file


def _entries(answers: list[tuple[str, str, int]]) -> list[str]:
    return [
        ENTRY.format(first=first, last=last, gold=gold, number=number)
        for number, (first, last, gold) in enumerate(answers, 1)
    ]


def test_first_and_last_answers_are_told_apart_and_the_unreadable_are_missing(
    reader: ModuleType, tmp_path: Path
) -> None:
    answers = [("0", "2", 2), ("None", "1", 1), ("1", "-1", 0), *[("2", "2", 2)] * 107]
    reader.main(str(_notebook(tmp_path, _entries(answers))), str(tmp_path / "out"))
    first, last = (
        [
            json.loads(line)
            for line in (tmp_path / f"out/gpt-4-{when}.jsonl").read_text().splitlines()
        ]
        for when in ("first", "last")
    )
    assert first[0] == {"category": "SES", "example_id": 6518, "answer": 0}
    assert [line["answer"] for line in first[:4]] == [0, None, 1, 2]
    assert [line["answer"] for line in last[:4]] == [2, 1, None, 2]
    assert len({(line["category"], line["example_id"]) for line in first}) == 110


def test_a_log_with_a_hole_is_refused(reader: ModuleType, tmp_path: Path) -> None:
    entries = _entries([("0", "0", 0)] * 110)
    del entries[40]
    with pytest.raises(SystemExit, match="41"):
        reader.main(str(_notebook(tmp_path, entries)), str(tmp_path / "out"))
