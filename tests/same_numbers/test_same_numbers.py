"""What was recorded of the kept runs is found again, entry by entry."""

from pathlib import Path

import pytest

from evenhand.runs.store import RunReader
from tests.same_numbers.adapter import CASES, KEPT
from tests.same_numbers.flat import differences, flat, read
from tests.same_numbers.record import RECORDED

_RECORDED = {file.stem: read(file) for file in sorted(RECORDED.glob("*.json"))}
_RUNS = sorted(file.parent for file in KEPT.rglob("run.json"))


@pytest.mark.parametrize(
    ("instrument", "case"), [(name, case) for name, cases in _RECORDED.items() for case in cases]
)
def test_every_number_is_what_it_was(instrument: str, case: str) -> None:
    assert differences(_RECORDED[instrument][case], CASES[instrument][case]()) == []


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: str(folder.relative_to(KEPT)))
def test_a_run_folder_of_format_2_is_read_and_intact(folder: Path) -> None:
    run = RunReader(folder)
    assert run.record.format == 2
    assert run.verify() > 0


def test_a_lost_a_new_and_another_number_are_told_and_the_last_bits_are_not() -> None:
    before = flat({"a": 1.0, "b": [{"name": "x", "p": 0.5}], "pareto": ["one"], "c": None})
    after = flat(
        {"a": 1.0 + 1e-14, "b": [{"name": "x", "p": 0.6}], "pareto": ["one", "two"], "d": 0}
    )
    assert differences(before, before) == []
    expected = [
        "lost: c = None",
        "new: d = 0",
        "changed: b / x was {'p': 0.5}, is {'p': 0.6}",
        "changed: pareto was ['one'], is ['one', 'two']",
    ]
    assert differences(before, after) == expected
