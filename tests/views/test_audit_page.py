"""The answer of an audit in words: an unfinished run, what a pass holds for, intervals of tests."""

import pytest

from evenhand.findings.audit import Audit, AuditCheck, Overall
from evenhand.views.audit_page import answer_of, checks
from evenhand.views.blocks import Grid, Line
from tests.errors import assert_names


def _audit(state: Overall, *checked: AuditCheck, not_run: int = 0, kind: str = "judge") -> Audit:
    more = {"run": "runs/judge", "not_run": not_run}
    return Audit(kind=kind, title="m", facts=(), checks=checked, state=state, more=more)


GOOD = AuditCheck(name="position", state="pass", says="", required=True)
OPEN = AuditCheck(name="identity", state="inconclusive", says="", required=True)


@pytest.mark.parametrize("kind", ["judge", "harm", "reward"])
def test_an_unfinished_run_that_passes_so_far_says_how_to_finish_it(kind: str) -> None:
    answer = answer_of(_audit("inconclusive", GOOD, not_run=1_200, kind=kind))
    assert_names(answer, "not finished", "1,200", "--out runs/judge")
    assert "inconclusive: ." not in answer


def test_an_unfinished_run_with_an_open_check_names_it_too() -> None:
    answer = answer_of(_audit("inconclusive", GOOD, OPEN, not_run=3))
    assert_names(answer, "identity", "not finished", 3)
    assert "not finished" not in answer_of(_audit("inconclusive", GOOD, OPEN))


def test_a_harm_scorer_that_passes_is_told_all_that_ends_its_pass() -> None:
    answer = answer_of(_audit("pass", GOOD, kind="harm"))
    assert_names(answer, "policy", "prompt", "judge", "examples", "bounds")


def test_an_interval_of_the_tests_is_marked_and_explained_below_the_table() -> None:
    tested = AuditCheck(
        name="injection", state="fail", says="", value=1.0, low=0.5, high=2.0, of_tests=True
    )
    usual = AuditCheck(name="scale", state="pass", says="", value=1.0, low=0.5, high=2.0)
    grid, *rest = checks(_audit("fail", tested, usual))
    assert isinstance(grid, Grid)
    assert [row[3] for row in grid.rows] == ["0.500 to 2.000 †", "0.500 to 2.000"]
    assert any(isinstance(block, Line) and block.text.startswith("†") for block in rest)
    assert not any(isinstance(block, Line) and "†" in block.text
                   for block in checks(_audit("pass", usual)))  # fmt: skip
