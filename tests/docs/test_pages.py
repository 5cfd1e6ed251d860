"""What the pages say of the code is what the code has, and their tables are tables."""

from pathlib import Path

import pytest

from evenhand.core.prices import AROUND_THE_WORDS
from tests.docs.test_code_blocks import PAGES, ROOT
from tests.errors import assert_names

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_line_below_a_table_head_is_made_of_hyphens(page: Path) -> None:
    """A minus sign looks the same, and the table is shown as text."""
    for line in page.read_text().splitlines():
        if line.startswith("|") and set(line) <= {*"|-: ", *DASHES}:
            assert not set(line) & set(DASHES), line


def test_the_page_on_plans_has_the_tokens_that_a_cap_reckons_with() -> None:
    page = (ROOT / "docs/plan.md").read_text()
    assert_names(page, f"{AROUND_THE_WORDS:,} tokens")
