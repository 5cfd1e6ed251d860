"""The pictures of the claims and of README hold the numbers of the pages."""

import html
import re
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.docs.test_code_blocks import ROOT
from tests.scripts import script

IMAGES = ROOT / "docs/images"


@pytest.fixture
def program() -> ModuleType:
    return script("docs_claims")


def _words(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [part.text or "" for part in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_of_the_claims_has_a_row_for_each_claim_of_the_page(
    program: ModuleType,
) -> None:
    page = program.PAGE.read_text("utf-8")
    claims = program.claims(page)
    assert len(claims) >= 8
    written = (IMAGES / "claims.svg").read_text("utf-8")
    assert _words(written) == _words(program.drawn_claims(page).svg)
    for claim in claims:
        assert {claim.measured, claim.estimate} <= set(_words(written)), claim.measured


def test_a_claim_has_the_numbers_of_the_section_that_it_links(program: ModuleType) -> None:
    page = program.PAGE.read_text("utf-8")
    sections = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-"): text
        for title, _, text in (part.partition("\n") for part in page.split("\n## ")[1:])
    }
    for claim in program.claims(page):
        value, _, ends = claim.estimate.rstrip(")").partition(" (")
        assert value in sections[claim.section], claim.measured
        assert ends in sections[claim.section], claim.measured


def test_the_picture_of_the_readme_shows_the_repair_of_stored_and_of_live_answers(
    program: ModuleType,
) -> None:
    drawn = program.drawn_repair(program.PAGE.read_text("utf-8"))
    for name in ("light", "dark"):
        assert _words((IMAGES / f"readme-{name}.svg").read_text("utf-8")) == _words(drawn.svg)
    rows = [word for word in _words(drawn.svg) if "→" in word]
    assert len(rows) == 4
    [alt_text] = re.findall(r'alt="([^"]*)"', (ROOT / "README.md").read_text("utf-8"))[:1]
    for before, after in (re.findall(r"\d\.\d\d", row) for row in rows):
        assert f"from {before} to {after}" in html.unescape(alt_text)
