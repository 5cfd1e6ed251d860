"""The tables on the documentation's page on papers are made by the command."""

from pathlib import Path

import pytest

from evenhand.core.errors import UserError
from evenhand.findings.papers import PAPERS, paper_named
from evenhand.views.paper_pages import paper_page, papers_page
from tests.errors import raises_naming

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "docs" / "reproduced"


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
    assert "| Table 5 | Accuracy and BIAS by category | `table5` | run, `dev reproduce" in overview


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
