"""Audits without bias are rarely called biased, and a bias of twice the stated size is found.

Here all cases of a command go in turn: 400 audits without bias and 200 with one for each command.
`make bench-null` has as many for each case.
"""

import json
import re
from pathlib import Path

import pytest

from bench.null_laboratory import (
    ELSEWHERE,
    LEAST_FOUND,
    NULL,
    PLANTED,
    RECORD,
    Row,
    cases_by,
    most_false,
    result_line,
    row,
)
from bench.simulated.outcomes import OUTCOMES
from evenhand import registry
from evenhand.instruments import instrument_named

PAGE = Path(__file__).parents[2] / "docs/null-laboratory.md"
COMMANDS = cases_by("command")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_few_audits_without_bias_are_called_biased_and_a_planted_bias_is_found(
    command: str,
) -> None:
    found = row(COMMANDS[command], command, NULL, PLANTED)
    assert found.false <= most_false(NULL)
    assert found.found >= LEAST_FOUND


def test_every_instrument_that_draws_a_conclusion_is_in_the_laboratory() -> None:
    """A verdict of one run rests on a score with an unbiased value; what has a primary measure is
    compared."""
    measured = {case.instrument for case in COMMANDS["measure"]}
    compared = {case.instrument for case in COMMANDS["compare"]}
    assert not (measured | compared) & set(ELSEWHERE)
    for name in registry.OWN["instruments"]:
        if name in ELSEWHERE:
            continue
        primary = instrument_named(name).primary()
        assert (name in measured) == any(one.null is not None for one in primary), name
        assert (name in compared) == bool(primary), name
    assert compared == set(OUTCOMES)


def test_a_share_may_lie_two_standard_errors_above_5_percent() -> None:
    """0.05 + 2·√(0.05·0.95/400) = 0.05 + 2·0.010897."""
    assert most_false(400) == pytest.approx(0.0717945, abs=1e-6)


def test_the_page_has_the_rows_that_were_recorded() -> None:
    """The table is the record, and the record has every path; none is beyond its bar."""
    recorded = [Row(**one) for one in json.loads(RECORD.read_text())["rows"]]
    assert {one.name for one in recorded} >= set(cases_by("path"))
    assert all((one.null, one.planted) >= (NULL, PLANTED) and one.holds for one in recorded)
    text = PAGE.read_text()
    table = re.findall(r"^\| ([^|]+?) \| ([\d.]+) % \| ([\d.]+) % \|$", text, re.MULTILINE)
    assert table == [(one.name, f"{100 * one.false:.1f}", f"{100 * one.found:.1f}")
                     for one in recorded]  # fmt: skip
    assert result_line(recorded) in text
