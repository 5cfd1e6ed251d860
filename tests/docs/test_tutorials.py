"""The tutorials are notebooks that run, and their pages show what the cells print."""

from pathlib import Path

import pytest

from tests.scripts import script

tutorials = script("docs_tutorials")


@pytest.mark.parametrize("notebook", tutorials.NOTEBOOKS, ids=lambda file: file.stem)
def test_a_tutorial_runs_and_its_page_is_what_came_out(notebook: Path) -> None:
    """After a change: python scripts/docs_tutorials.py."""
    assert tutorials.page_of(notebook) == notebook.with_suffix(".md").read_text("utf-8")


def test_there_are_tutorials() -> None:
    assert len(tutorials.NOTEBOOKS) >= 3
