"""Each engine against a loopback server that speaks its wire format."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from evenhand.agents.tools.search import Brave, MediaWiki, SearchEngine, SearchModel, SearXNG
from evenhand.core.errors import SearchFailed, UserError
from tests.errors import raises_naming

from .servers import Answer, asking, saying, searxng_results, serving, soon

BRAVE = {
    "type": "search",
    "query": {"original": "wage gap"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Wages",
                "url": "https://example.org/wages",
                "description": "The <strong>wage gap</strong> is 20 &amp; falling.",
                "extra_snippets": ["It was 30 in 1990."],
            },
            {"title": "More", "url": "https://example.org/more", "description": "More."},
        ],
    },
}


def wiki_page(number: int, index: int, extract: str | None) -> dict[str, Any]:
    page = {
        "pageid": number,
        "ns": 0,
        "title": f"Page {number}",
        "index": index,
        "fullurl": f"https://wiki.example/wiki/Page_{number}",
    }
    return page if extract is None else {**page, "extract": extract}


async def test_searxng_gives_its_results_in_their_order() -> None:
    async with saying(searxng_results("first words", "second words", "third")) as server:
        engine = SearXNG(server.url + "/")
        hits = await engine.search("wage gap", 2, soon())
        await engine.close()
    assert server.asked == [{"q": "wage gap", "format": "json"}]
    assert [(hit.url, hit.title, hit.text) for hit in hits] == [
        ("https://example.org/1", "Page 1", "first words"),
        ("https://example.org/2", "Page 2", "second words"),
    ]


async def test_searxng_without_results_found_nothing() -> None:
    async with saying(searxng_results()) as server:
        engine = SearXNG(server.url)
        assert await engine.search("wage gap", 5, soon()) == ()
        await engine.close()


async def test_searxng_whose_engines_were_all_blocked_did_not_find_nothing() -> None:
    blocked = {**searxng_results(), "unresponsive_engines": [["google", "CAPTCHA"]]}
    async with saying(blocked) as server:
        engine = SearXNG(server.url)
        with raises_naming(SearchFailed, "google"):
            await engine.search("wage gap", 5, soon())
        await engine.close()


async def test_brave_gets_the_key_in_its_header_and_gives_snippets_without_markup() -> None:
    async with saying(BRAVE) as server:
        engine = Brave("key-0123456789abcdef", url=server.url)
        hits = await engine.search("wage gap", 5, soon())
        await engine.close()
    assert server.asked == [{"q": "wage gap", "count": "5"}]
    assert server.headers[0]["x-subscription-token"] == "key-0123456789abcdef"
    snippets = [
        "The wage gap is 20 & falling.\nIt was 30 in 1990.",
        "More.",
    ]
    assert [hit.text for hit in hits] == snippets


async def test_brave_leaves_the_list_out_where_it_found_nothing() -> None:
    async with saying({"type": "search", "query": {}}) as server:
        engine = Brave("key-0123456789abcdef", url=server.url)
        assert await engine.search("wage gap", 5, soon()) == ()
        await engine.close()


async def test_braves_key_is_removed_from_what_it_found() -> None:
    key = "key/0123456789abcdef"
    entry = {
        "url": f"https://example.org/?key={quote(key, safe='')}",
        "title": f"Your {key}",
        "description": key.replace("/", "&#47;"),
        "extra_snippets": [key],
    }
    async with saying({"type": "search", "web": {"results": [entry]}}) as server:
        engine = Brave(key, url=server.url)
        (found,) = await engine.search("wages", 5, soon())
        await engine.close()
    assert (found.url, found.title) == ("[redacted]", "Your [redacted]")
    assert found.text == "[redacted]\n[redacted]"


async def test_an_error_of_brave_does_not_tell_the_key() -> None:
    key = "key-0123456789abcdef"
    async with saying({"error": f"bad token {key}"}, status=422) as server:
        engine = Brave(key, url=server.url)
        with pytest.raises(SearchFailed) as failed:
            await engine.search("wage gap", 5, soon())
        await engine.close()
    assert key not in str(failed.value)
    assert key not in repr(engine.describe())
    with pytest.raises(SearchFailed) as failed:  # nobody listens there any more
        await engine.search("wage gap", 5, soon())
    await engine.close()
    assert key not in repr(failed.value.__context__)
    assert key not in repr(failed.value)


async def test_a_wiki_gives_the_introductions_in_the_order_of_its_ranking() -> None:
    pages = [wiki_page(7, 2, "Second."), wiki_page(9, 1, "First.")]
    async with saying({"batchcomplete": True, "query": {"pages": pages}}) as server:
        engine = MediaWiki(server.url + "/w/api.php")
        hits = await engine.search("wage gap", 5, soon())
        await engine.close()
    assert [(hit.title, hit.text) for hit in hits] == [("Page 9", "First."), ("Page 7", "Second.")]
    assert len(server.asked) == 1
    assert server.asked[0]["gsrsearch"] == "wage gap"


async def test_a_wiki_without_introductions_is_asked_for_the_pages() -> None:
    def answer(path: str, given: Mapping[str, str]) -> Answer:
        if given["action"] == "query":
            said: Any = {
                "batchcomplete": True,
                "warnings": {"query": {"warnings": 'Unrecognized value for "prop": extracts.'}},
                "query": {"pages": [wiki_page(7, 1, None), wiki_page(8, 2, "")]},
            }
        else:
            html = f"<div><p>The words of page {given['pageid']}.</p></div>"
            said = {"parse": {"title": "t", "pageid": 7, "text": html}}
        return 200, "application/json", json.dumps(said).encode()

    async with serving(answer) as server:
        engine = MediaWiki(server.url + "/api.php")
        hits = await engine.search("wage gap", 5, soon())
        await engine.close()
    introductions = ["The words of page 7.", "The words of page 8."]
    assert [hit.text for hit in hits] == introductions


async def test_a_wiki_that_finds_nothing_says_only_that_it_is_done() -> None:
    async with saying({"batchcomplete": True}) as server:
        engine = MediaWiki(server.url + "/api.php")
        assert await engine.search("wage gap", 5, soon()) == ()
        await engine.close()


async def test_an_error_of_a_wiki_comes_with_a_200_and_is_a_failure() -> None:
    error = {"error": {"code": "ratelimited", "info": "You've exceeded your rate limit."}}
    async with saying(error) as server:
        engine = MediaWiki(server.url + "/api.php")
        with raises_naming(SearchFailed, "rate limit"):
            await engine.search("wage gap", 5, soon())
        await engine.close()


ENGINES = [
    pytest.param(SearXNG, id="searxng"),
    pytest.param(lambda url: MediaWiki(url + "/api.php"), id="mediawiki"),
    pytest.param(lambda url: Brave("key-0123456789abcdef", url=url), id="brave"),
]
CAPTCHA = b"<!doctype html><title>Are you a robot?</title><form>captcha</form>"


@pytest.mark.parametrize("engine_at", ENGINES)
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (CAPTCHA, "text/html"),
        (b"", "application/json"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b"{}", "application/json"),
        (b'{"results": 7, "web": 7, "query": 7}', "application/json"),
        (b'{"results": [1], "type": "search", "web": {"results": [1]}}', "application/json"),
        (b'{"results": [', "application/json"),
        (b"\xff\xfe\x00", "application/json"),
        (b'{"results": [], "x": "' + b"x" * 3_000_000 + b'"}', "application/json"),
    ],
    ids="captcha empty list null object numbers entries cut bytes huge".split(),
)
async def test_garbage_is_a_failure_and_never_nothing_found(
    engine_at: Any, body: bytes, kind: str
) -> None:
    async with saying(body, kind=kind) as server:
        model = SearchModel(engine_at(server.url))
        with pytest.raises(SearchFailed):
            await model.complete(asking("wage gap"))
        await model.close()


@pytest.mark.parametrize("engine_at", ENGINES)
@pytest.mark.parametrize(("status", "tries"), [(500, 3), (429, 3), (403, 1), (404, 1), (302, 1)])
async def test_a_refusal_is_a_failure_and_only_what_may_pass_is_tried_again(
    engine_at: Any, status: int, tries: int
) -> None:
    async with saying({"results": []}, status=status) as server:
        engine: SearchEngine = engine_at(server.url)
        with raises_naming(SearchFailed, f"HTTP {status}") as failed:
            await engine.search("wage gap", 5, soon())
        await engine.close()
    assert len(server.asked) == tries
    assert failed.value.attempts == tries


async def test_a_redirect_is_not_followed_with_the_query() -> None:
    async with saying({"results": []}) as other, saying({}, status=302) as server:
        server.moved_to = other.url
        engine = SearXNG(server.url)
        with raises_naming(SearchFailed, "redirect"):
            await engine.search("wage gap", 5, soon())
        await engine.close()
    assert other.asked == []


async def test_an_engine_that_comes_back_is_asked_again() -> None:
    statuses = [503, 200]

    def answer(path: str, given: Mapping[str, str]) -> Answer:
        body = json.dumps(searxng_results("found")).encode()
        return statuses.pop(0), "application/json", body

    async with serving(answer) as server:
        engine = SearXNG(server.url)
        hits = await engine.search("wage gap", 5, soon())
        await engine.close()
    assert [hit.text for hit in hits] == ["found"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.example",
        "search.example",
        "http://",
        "http://a:b@x.example",
        "http://x.example/?k=1",
    ],
)
def test_an_address_that_holds_a_secret_or_is_none_is_refused(url: str) -> None:
    with raises_naming(UserError, "url"):
        MediaWiki(url)


async def test_an_engine_that_was_used_still_travels_to_another_process() -> None:
    async with saying(searxng_results("found")) as server:
        model = SearchModel(SearXNG(server.url))
        said = await model.complete(asking("wage gap"))
        again: SearchModel = pickle.loads(pickle.dumps(model))
        assert (await again.complete(asking("wage gap"))).samples == said.samples
        assert again.describe() == model.describe()
        await model.close()
        await again.close()


def test_what_a_run_keeps_of_an_engine_names_it_and_its_address() -> None:
    assert SearchModel(MediaWiki(), most=3).describe() == {
        "kind": "search",
        "model": "mediawiki@1",
        "most": 3,
        "pages": False,
        "url": "https://en.wikipedia.org/w/api.php",
    }
    assert Path(SearXNG("http://127.0.0.1:8888/search").describe()["url"]).name == "search"
