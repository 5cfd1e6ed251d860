"""The search engines of the config, and how each is built from its settings.

A search engine of another package is registered in the same form: a function from `SearchSettings`
to a `SearchEngine`, under the name that the engine itself has before its "@".
"""

import asyncio
import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenhand.agents.tools.search.base import Hit, SearchEngine, hit, in_thread
from evenhand.agents.tools.search.corpus import Corpus
from evenhand.agents.tools.search.fetch import text_of_html
from evenhand.agents.tools.search.wire import JsonApi, entries, words
from evenhand.core.errors import SearchFailed, UserError
from evenhand.models.keys import origin

BRAVE = "https://api.search.brave.com/res/v1/web/search"
_TAG = re.compile(r"</?strong>")  # around the words of the query


class Brave:
    """An index of its own behind a key (header `X-Subscription-Token`)."""

    name = "brave@1"
    gives_pages = False

    def __init__(self, key: str, *, url: str = BRAVE) -> None:
        self._api = JsonApi("brave", url, key_header="x-subscription-token", key=key)

    def describe(self) -> dict[str, Any]:
        return {"url": self._api.url}

    async def close(self) -> None:
        await self._api.close()

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:
        answer = await self._api.get({"q": query, "count": str(most)}, deadline)
        if answer.get("type") != "search":
            raise self._api.failed("its answer is not one to a search")
        web = answer.get("web", {"results": []})  # left out where nothing was found
        results = entries(web.get("results")) if isinstance(web, dict) else None
        if results is None:
            raise self._api.failed("its answer has no list of results")
        return tuple(self._hit(result, query) for result in results[:most])

    def _hit(self, result: dict[str, Any], query: str) -> Hit:
        fields = words(result.get("url")), words(result.get("title")), _snippets(result)
        url, title, text = map(self._api.redact, fields)
        return hit(url, title, text, query)


def _snippets(result: dict[str, Any]) -> str:
    more = result.get("extra_snippets")
    lines = [result.get("description"), *(more if isinstance(more, list) else [])]
    return "\n".join(html.unescape(_TAG.sub("", words(line))) for line in lines if line)


_MOST_SECONDS = 15


class DuckDuckGo:
    """DuckDuckGo through the ddgs library, which reads its result pages for lack of a public API.

    The library says "No results found." for an empty answer, a captcha and an HTTP error alike.
    None of them is told from the others, so all of them are `SearchFailed`.
    """

    name = "duckduckgo@1"
    gives_pages = False

    def describe(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        return None

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:
        left = deadline - asyncio.get_running_loop().time()
        seconds = max(1, math.floor(min(left, _MOST_SECONDS)))
        results = await in_thread(_ask, query, most, seconds)
        return tuple(
            hit(
                words(result.get("href")),
                words(result.get("title")),
                words(result.get("body")),
                query,
            )
            for result in results[:most]
        )


def _ask(query: str, most: int, seconds: int) -> list[dict[str, Any]]:
    try:
        from ddgs import DDGS  # noqa: PLC0415
        from ddgs.engines import ENGINES  # noqa: PLC0415
        from ddgs.exceptions import DDGSException  # noqa: PLC0415
    except ImportError:
        raise SearchFailed("duckduckgo needs ddgs: pip install 'evenhand[search]'") from None
    if "duckduckgo" not in ENGINES["text"]:  # it would ask whichever others it knows
        raise SearchFailed("this version of ddgs does not read DuckDuckGo")
    try:
        return DDGS(timeout=seconds).text(query, max_results=most, backend="duckduckgo")
    except DDGSException as error:
        raise SearchFailed(
            f"duckduckgo: {error}"[:300] + " (an empty answer looks like a refused one)"
        ) from None


WIKIPEDIA = "https://en.wikipedia.org/w/api.php"


class MediaWiki:
    """Wikipedia and every other MediaWiki.

    One call searches and brings the introductions along, where the wiki has the TextExtracts
    extension (Wikipedia does). Where it has not, or a page has no introduction, the page is asked
    for as HTML.

    >>> engine = MediaWiki("https://en.wikipedia.org/w/api.php")
    """

    name = "mediawiki@1"
    gives_pages = True

    def __init__(self, url: str = WIKIPEDIA) -> None:
        self._api = JsonApi("mediawiki", url)

    def describe(self) -> dict[str, Any]:
        return {"url": self._api.url}

    async def close(self) -> None:
        await self._api.close()

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:
        answer = await self._ask(
            {
                "action": "query",
                "generator": "search",
                "gsrsearch": query,
                "gsrlimit": str(most),
                "gsrwhat": "text",  # by default a wiki with the plain search looks at titles alone
                "prop": "info|extracts",
                "inprop": "url",
                "exintro": "1",
                "explaintext": "1",
                "exlimit": "max",
            },
            deadline,
        )
        if "query" not in answer and "batchcomplete" in answer:
            return ()  # what a wiki says that finds nothing
        result = answer.get("query")
        pages = entries(result.get("pages")) if isinstance(result, dict) else None
        if pages is None or not all(isinstance(page.get("index"), int) for page in pages):
            raise self._api.failed("its answer has no list of pages")
        pages.sort(key=lambda page: int(page["index"]))
        return tuple(
            await asyncio.gather(*(self._hit(page, query, deadline) for page in pages[:most]))
        )

    async def _hit(self, page: dict[str, Any], query: str, deadline: float) -> Hit:
        text = words(page.get("extract")) or await self._page(page.get("pageid"), deadline)
        url, title = words(page.get("fullurl")), words(page.get("title"))
        return await in_thread(hit, url, title, text, query)

    async def _page(self, number: Any, deadline: float) -> str:
        answer = await self._ask(
            {
                "action": "parse",
                "pageid": str(number),
                "prop": "text",
                "disablelimitreport": "1",
                "disableeditsection": "1",
            },
            deadline,
        )
        parsed = answer.get("parse")
        if not isinstance(parsed, dict):
            raise self._api.failed("its answer has no page")
        page = f"<html><body><article>{words(parsed.get('text'))}</article></body></html>"
        return await in_thread(text_of_html, page.encode("utf-8", "replace"))

    async def _ask(self, parameters: dict[str, str], deadline: float) -> dict[str, Any]:
        form = {"format": "json", "formatversion": "2"}
        answer = await self._api.get({**parameters, **form}, deadline)
        error = answer.get("error")  # a wiki says so with a 200
        if error is not None:
            info = error.get("info") if isinstance(error, dict) else error
            raise self._api.failed(f"said: {info}")
        return answer


class SearXNG:
    """A metasearch engine that one runs oneself. Its JSON format is off by default there:
    `search: {formats: [html, json]}` in its settings.yml.

    >>> engine = SearXNG("http://127.0.0.1:8888")
    """

    name = "searxng@1"
    gives_pages = False

    def __init__(self, url: str) -> None:
        self._api = JsonApi("searxng", f"{url.rstrip('/').removesuffix('/search')}/search")

    def describe(self) -> dict[str, Any]:
        return {"url": self._api.url}

    async def close(self) -> None:
        await self._api.close()

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]:
        answer = await self._api.get({"q": query, "format": "json"}, deadline)
        results = entries(answer.get("results"))
        if results is None:
            raise self._api.failed("its answer has no list of results")
        # It answers 200 with no result where every engine behind it was blocked or too slow.
        silent = answer.get("unresponsive_engines")
        if not results and silent:
            raise self._api.failed(f"no result, and engines that did not answer: {silent}")
        return tuple(
            hit(
                words(result.get("url")),
                words(result.get("title")),
                words(result.get("content")),
                query,
            )
            for result in results[:most]
        )


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What [search] in the config says, with the places that an engine may look into."""

    url: str | None = None
    path: Path | None = None
    api_key_env: str | None = None
    environment: Mapping[str, str]
    cache: Path

    def key(self, usual: str, home: str | None = None) -> str:
        """The key in the environment variable that the config names, or else in the usual one,
        which is for the engine's own address, `home`, alone."""
        if self.url and home and not self.api_key_env and origin(self.url) != origin(home):
            raise UserError(f"[search] url: {usual} is for {home}; name this one's api_key_env")
        variable = self.api_key_env or usual
        return needed(
            self.environment.get(variable), f"a key in the environment variable {variable}"
        )


def needed(value: _T | None, example: str) -> _T:
    """A setting that an engine cannot do without."""
    if not value:
        raise UserError(f"[search] with this engine needs {example}")
    return value


def searxng(settings: SearchSettings) -> SearchEngine:
    return SearXNG(needed(settings.url, 'url = "http://127.0.0.1:8888"'))


def mediawiki(settings: SearchSettings) -> SearchEngine:
    return MediaWiki(settings.url or WIKIPEDIA)


def brave(settings: SearchSettings) -> SearchEngine:
    return Brave(settings.key("BRAVE_API_KEY", BRAVE), url=settings.url or BRAVE)


def duckduckgo(settings: SearchSettings) -> SearchEngine:
    del settings  # it has none
    return DuckDuckGo()


def corpus(settings: SearchSettings) -> SearchEngine:
    path = needed(settings.path, 'path = "evidence/", a folder or a JSONL file')
    return Corpus(path, cache=settings.cache)
