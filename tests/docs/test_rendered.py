"""The pages are rendered as the site renders them, and no table is left as text."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown  # type: ignore[import-untyped]  # its stubs are no dependency
import pytest
import yaml

from tests.docs.test_code_blocks import PAGES, ROOT

SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
# README is rendered elsewhere; GitHub and the site agree on tables.
OTHERS = [*(ROOT / "docs" / "reference").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
_ROW = re.compile(r"^\s*\|.*\|\s*$", re.MULTILINE)
# The line below a head, of hyphens or of a sign that looks like one.
_DASH = "\\u2010-\\u2014\\u2212-"
_RULE = re.compile(rf"^(?=.*\|)[|:\s{_DASH}]*[{_DASH}][|:\s{_DASH}]*$", re.MULTILINE)


class _Prose(HTMLParser):
    """The words of paragraphs and headings, outside of tables and code."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag in ("table", "pre", "code"):
            self._within.append(tag)
        elif tag in ("p", "h1", "h2", "h3", "li"):
            self.words.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        if not self._within:
            self.words.append(data)


def _left_over(text: str) -> list[str]:
    """Render a page with the extensions of the site, and give the rows of tables that are words."""
    named = [
        one if isinstance(one, str) else next(iter(one)) for one in SITE["markdown_extensions"]
    ]
    prose = _Prose()
    prose.feed(markdown.markdown(text, extensions=named))
    said = "".join(prose.words)
    return [*_ROW.findall(said), *_RULE.findall(said)]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_every_table_of_a_page_is_shown_as_a_table(page: Path) -> None:
    assert _left_over(page.read_text()) == []


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("| a | b |\n| \u2212 | \u2212 |\n| 1 | 2 |", id="minus signs"),
        pytest.param("Words right before\n| a | b |\n| --- | --- |\n| 1 | 2 |", id="no empty line"),
        pytest.param("| a | b |\n| 1 | 2 |", id="no line below the head"),
        pytest.param("a | b | c\n--- | ---\n1 | 2 | 3", id="too few columns below the head"),
    ],
)  # fmt: skip
def test_a_table_that_is_no_table_is_found(broken: str) -> None:
    assert _left_over(f"# Page\n\n{broken}\n")


def test_a_table_and_a_pipe_in_code_are_no_leftovers() -> None:
    page = "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n`x | y | z`\n\n```text\n| a |\n```\n"
    assert _left_over(page) == []


def _pages_of(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
        return
    for below in part.values() if isinstance(part, dict) else part:
        yield from _pages_of(below)


def test_every_page_is_in_the_navigation_once() -> None:
    """A page that no list names is found by search alone."""
    listed = [*_pages_of(SITE["nav"])]
    there = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(listed) == there


def test_the_site_asks_for_nothing_from_outside() -> None:
    """No font, script, style or picture comes from another host."""
    assert SITE["theme"]["font"] is False
    own = [*SITE.get("extra_css", ()), SITE["theme"]["logo"], SITE["theme"]["favicon"]]
    assert all((ROOT / "docs" / file).is_file() for file in own)
    assert not SITE.get("extra_javascript")
    outside = re.compile(
        r"""(?:!\[[^\]]*\]\(|src=["']|url\(["']?|@import\s+["'])\s*(?:https?:)?//"""
    )
    files = [*PAGES, *OTHERS, *(ROOT / "docs" / "assets").glob("*.css")]
    assert [file.name for file in files if outside.search(file.read_text())] == []
