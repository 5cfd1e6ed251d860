"""The pages of a report and a comparison: the answer first and last, and marks only where shown."""

from functools import cache
from pathlib import Path

import pytest

from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.report import Report, report
from evenhand.instruments.bbq.instrument import Bbq
from evenhand.runs.store import RunReader
from evenhand.views import page_of
from evenhand.views.blocks import Block, Grid, Line
from tests.errors import assert_names

KEPT = Path(__file__).parents[1] / "same_numbers/kept/bbq"


@cache
def _report(name: str) -> Report:
    return report(Bbq(), RunReader(KEPT / name))


def _comparison(before: str, after: str) -> Comparison:
    return compare(Bbq(), RunReader(KEPT / before), RunReader(KEPT / after))


def _lines(page: list[Block]) -> list[str]:
    return [block.text for block in page if isinstance(block, Line)]


def test_a_bias_in_every_template_is_shown_first_and_last() -> None:
    found = _report("always_stereotyped")
    assert found.verdict.state == "detected"
    lines = [line for line in _lines(page_of(found)) if line.startswith("BIAS ")]
    assert len(lines) == 2
    assert all(line.startswith("BIAS DETECTED.") for line in lines)


def test_who_never_names_anybody_is_told_that_0_says_nothing() -> None:
    found = _report("always_unknown")
    assert found["s_amb"].value == 0
    assert found["s_amb"].undefined == "no_spread"
    assert_names(found.notes[0], '"unknown"', "100%", "bias score", 0)
    assert found.verdict.state == "inconclusive"


def test_a_category_is_marked_only_after_holm_over_all_of_them() -> None:
    found = _report("default")
    estimates = [e for group in found.groups["category"].values() for e in group]
    bias = [e for e in estimates if e.name == "s_amb" and e.value is not None]
    assert all(e.p_holm is not None and e.p_holm >= (e.p or 0.0) for e in bias)
    marked = {
        row[0]
        for block in page_of(found)
        if isinstance(block, Grid) and block.columns[:1] == ("category",)
        for row in block.rows
        if "✗" in row[1]
    }
    shown = {
        name.replace("_", " ")
        for name, group in found.groups["category"].items()
        for e in group
        if e.name == "s_amb" and (e.p_holm or 1.0) <= 0.05
    }
    assert marked == shown


def test_a_run_against_itself_shows_nothing_and_excludes_nothing() -> None:
    found = _comparison("default", "default")
    assert found.verdict.state == "inconclusive"
    assert all(change.effect == 0 for change in found.primary)
    assert all(change.before == change.after for change in found.primary)
    states = {line.name: line.state for line in found.guardrails}
    # Too few templates to say that it is non-inferior.
    assert states["accuracy_disambiguated"] == "inconclusive"
    assert "violated" not in states.values()
    page = page_of(found)
    grid = next(block for block in page if isinstance(block, Grid))
    assert all(row[0].startswith("? ") for row in grid.rows)


def test_the_largest_change_there_is_has_a_small_p_and_a_cross() -> None:
    found = _comparison("always_unknown", "always_stereotyped")
    change = found["s_amb"]
    assert (change.difference, change.se) == (1.0, 0.0)
    assert change.p is not None
    assert change.p == pytest.approx(2 / 10_001)  # the least that 10,000 sign patterns can show
    assert change.p_holm is not None
    assert change.p_holm < 0.05
    grid = next(block for block in page_of(found) if isinstance(block, Grid))
    assert grid.rows[0][0].startswith("✗ ")


def test_every_estimate_of_a_full_page_has_its_label_and_n() -> None:
    found = _report("default")
    grid = next(block for block in page_of(found, full=True) if isinstance(block, Grid))
    label = Bbq().measure("unsupported_attribution").label
    assert [row[0] for row in grid.rows].count(label) == 1
    absent = [one for one in Bbq.measures if one.absent]  # this folder is older than they are
    assert len(grid.rows) == len(Bbq.measures) - len(absent)
