"""The tutorials are notebooks that run, and their pages show what the cells print."""

import importlib.util
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT

_SPEC = importlib.util.spec_from_file_location("tutorials", ROOT / "scripts/docs_tutorials.py")
assert _SPEC is not None
assert _SPEC.loader is not None
tutorials = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tutorials)


@pytest.mark.parametrize("notebook", tutorials.NOTEBOOKS, ids=lambda file: file.stem)
def test_a_tutorial_runs_and_its_page_is_what_came_out(notebook: Path) -> None:
    """After a change: python scripts/docs_tutorials.py."""
    assert tutorials.page_of(notebook) == notebook.with_suffix(".md").read_text("utf-8")


def test_there_are_tutorials() -> None:
    assert len(tutorials.NOTEBOOKS) == 2
