"""The page on configuration has every table and key that the files may have."""

import importlib.util

from tests.docs.test_code_blocks import ROOT

_SPEC = importlib.util.spec_from_file_location(
    "configuration", ROOT / "scripts/docs_configuration.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
configuration = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(configuration)


def test_the_page_is_what_the_script_writes() -> None:
    """After a change: python scripts/docs_configuration.py."""
    assert configuration.PAGE.read_text("utf-8") == configuration.page()
