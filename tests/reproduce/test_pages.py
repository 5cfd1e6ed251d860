"""The tables on the documentation's page on papers are made by the command."""

from pathlib import Path

import pytest

from evenhand.findings.papers import PAPERS, paper_named
from evenhand.views.paper_pages import paper_page, papers_page

ROOT = Path(__file__).parents[2]
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
