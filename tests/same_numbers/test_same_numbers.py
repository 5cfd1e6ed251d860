"""What was recorded before the reports were rewritten is found again, entry by entry."""

from pathlib import Path

import pytest

from evenhand.store import RunReader
from same_numbers.adapter import CASES, KEPT
from same_numbers.as_before import WITHOUT
from same_numbers.as_before.intervals import as_recorded
from same_numbers.flat import differences, flat, read
from same_numbers.record import RECORDED

_RECORDED = {file.stem: read(file) for file in sorted(RECORDED.glob("*.json"))}
_RUNS = sorted(file.parent for file in KEPT.rglob("run.json"))


@pytest.mark.parametrize(
    ("instrument", "case"), [(name, case) for name, cases in _RECORDED.items() for case in cases]
)
def test_every_number_is_what_it_was(instrument: str, case: str) -> None:
    with as_recorded(instrument):
        today = CASES[instrument][case]()
    recorded, found = (
        {path: value for path, value in entries.items() if path.split(" / ")[-1] not in WITHOUT}
        for entries in (_RECORDED[instrument][case], today)
    )
    assert differences(recorded, found) == []


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: str(folder.relative_to(KEPT)))
def test_a_run_folder_of_format_2_is_read_and_intact(folder: Path) -> None:
    run = RunReader(folder)
    assert run.record.format == 2
    assert run.verify() > 0


def test_a_lost_a_new_and_another_number_are_told_and_the_last_bits_are_not() -> None:
    before = flat({"a": 1.0, "b": [{"name": "x", "p": 0.5}], "notes": ["one"], "c": None})
    after = flat(
        {"a": 1.0 + 1e-14, "b": [{"name": "x", "p": 0.6}], "notes": ["one", "two"], "d": 0}
    )
    assert differences(before, before) == []
    assert differences(before, after) == [
        "lost: c = None",
        "new: d = 0",
        "changed: b / x was {'p': 0.5}, is {'p': 0.6}",
        "changed: notes was ['one'], is ['one', 'two']",
    ]
