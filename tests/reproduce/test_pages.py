"""The pages of the papers in the documentation are made by the command."""

from pathlib import Path

import pytest

from evenhand.cli.reproduce import paper_page
from evenhand.findings.papers import PAPERS, paper_named

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_page_is_what_the_command_makes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    made = paper_page(paper_named(name), Path("docs/reproduced"))
    assert (ROOT / f"docs/paper-{name}.md").read_text() == made, (
        f"evenhand reproduce page {name} --tables docs/reproduced > docs/paper-{name}.md"
    )
