"""The page on configuration has every table and key that the files may have."""

from tests.scripts import script

configuration = script("docs_configuration")


def test_the_page_is_what_the_script_writes() -> None:
    """After a change: python scripts/docs_configuration.py."""
    assert configuration.PAGE.read_text("utf-8") == configuration.page()
