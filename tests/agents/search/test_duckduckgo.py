"""DuckDuckGo: ddgs, the library that reads its pages, against a page of the same form."""

import pytest
from ddgs.engines.duckduckgo import Duckduckgo

from evenhand.agents.tools.search import DuckDuckGo, SearchModel
from evenhand.core.errors import SearchFailed
from tests.errors import raises_naming

from .servers import asking, saying, soon

PAGE = b"""<html><body><div class="links_main result__body">
<h2 class="result__title"><a href="https://example.org/wages">Wages by country</a></h2>
<a class="result__snippet" href="https://example.org/wages">The wage gap is closing.</a></div>
<div class="links_main result__body"><h2><a href="https://example.org/more">More wage gap</a></h2>
<a class="result__snippet" href="https://example.org/more">More on the wage gap.</a></div>
</body></html>"""


async def test_results_come_out_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async with saying(PAGE, kind="text/html") as server:
        monkeypatch.setattr(Duckduckgo, "search_url", server.url)
        hits = await DuckDuckGo().search("wage gap", 5, soon())
    assert server.asked[0]["q"] == "wage gap"
    expected = {
        ("https://example.org/wages", "The wage gap is closing."),
        ("https://example.org/more", "More on the wage gap."),
    }
    assert {(hit.url, hit.text) for hit in hits} == expected


@pytest.mark.parametrize(
    ("status", "body"),
    [(202, b"<html>captcha</html>"), (500, b""), (200, b"<html>captcha</html>"), (200, b"")],
    ids="challenge broken captcha empty".split(),
)
async def test_an_answer_without_results_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    async with saying(body, status=status, kind="text/html") as server:
        monkeypatch.setattr(Duckduckgo, "search_url", server.url)
        with raises_naming(SearchFailed, "duckduckgo"):
            await SearchModel(DuckDuckGo()).complete(asking("wage gap"))
