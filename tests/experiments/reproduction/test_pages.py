"""The tables on the documentation's page on papers are made by the command."""

import re
from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.papers import PAPERS, paper_named
from evenhand.findings.reproduction import catalogue
from evenhand.views.paper_pages import paper_page, papers_page
from tests.errors import raises_naming

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "docs" / "reproduced"
_NOT_RUN = ("Not run: ", "Cannot be run: ", "No results to reproduce: ")


def test_the_page_of_the_papers_ends_with_what_the_command_makes() -> None:
    page = (ROOT / "docs/papers.md").read_text()
    assert page.endswith(papers_page(TABLES)), (
        "put the output of `evenhand dev reproduce page` in the place of all from '## StarDTox' on"
    )


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_own_page_has_all_its_tables_and_figures(name: str) -> None:
    paper = paper_named(name)
    made = paper_page(paper, TABLES)
    assert made.count("\n## ") == len(paper.order) + bool(paper.trained)


def test_a_long_table_is_on_the_papers_own_page_and_not_on_the_page_of_all() -> None:
    overview, own = papers_page(TABLES), paper_page(paper_named("mabrf"), TABLES)
    of_disability = (
        "| Disability Status | 0.9 | 0.9 | 0.9 | 0.9 | 0.0 (0.0 to 1.0, no spread, n 4) |"
    )
    assert (overview.count(of_disability), own.count(of_disability)) == (0, 1)


def test_a_result_of_a_paper_is_run_partly_run_with_its_rows_or_not_run_with_the_reason() -> None:
    overview = papers_page(TABLES)
    partly = "| Table 3 | Accuracy and BIAS by context | `table3` | partly: rows without search |"
    assert partly in overview
    assert "| Table 6 | How many questions BBQ has | `table6` | run |" in overview
    for paper in map(paper_named, PAPERS):
        part = overview.split(f"\n## {paper.called}\n")[-1].split("\n## ")[0]
        for entry in catalogue([paper.name]).entries:
            where = entry.where.partition(",")[0]
            not_run = [line for line in part.splitlines() if line.startswith(_NOT_RUN)]
            named = [line for line in not_run if re.search(rf"\b{where}\b", line)]
            rows = [line for line in part.splitlines() if line.startswith(f"| {where} |")]
            assert len(rows) + len(named) == 1, (paper.name, entry.table)
            for row in rows:
                assert re.search(r"\| (run|partly: .+) \|$", row), row


def test_a_recorded_table_that_is_cut_off_is_refused_by_name(tmp_path: Path) -> None:
    recorded = (TABLES / "mabrf-table5.json").read_bytes()
    (tmp_path / "mabrf-table5.json").write_bytes(recorded[:200])
    with raises_naming(UserError, "mabrf-table5.json"):
        papers_page(tmp_path)
    with raises_naming(UserError, "mabrf-table5.json"):
        paper_page(paper_named("mabrf"), tmp_path)


def test_a_difference_that_holds_for_several_tables_of_a_paper_is_stated_once() -> None:
    sample = "- Sample: the paper's 110 questions are preset=mabrf"
    assert papers_page(TABLES).count(sample) == 1
