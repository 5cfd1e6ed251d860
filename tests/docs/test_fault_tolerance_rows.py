"""The page on fault tolerance has every fault and threat, and the tests that it names."""

import re

import pytest

from tests.docs.test_code_blocks import ROOT

PAGE = (ROOT / "docs/fault-tolerance.md").read_text()
FAULTS = ("1", "3", "4", "5", "6", "7", "8", "9", "11", "12", "13", "14", "16", "17", "18")
THREATS = (*map(str, range(1, 17)), "19", "20", "21", "22")
ROWS = [*(f"R{number}" for number in FAULTS), *(f"T{number}" for number in THREATS)]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_a_test_or_says_that_there_is_none(row: str) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    assert "`tests/" in line or "**not covered**" in line


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE))))
def test_a_test_that_is_named_is_there(named: str) -> None:
    file, _, function = named.partition("::")
    assert f"def {function}" in (ROOT / file).read_text()
