"""Wikipedia and every other MediaWiki.

One call searches and brings the introductions along, where the wiki has the TextExtracts extension
(Wikipedia does). Where it has not, or a page has no introduction, the page is asked for as HTML.
"""

import asyncio
from typing import Any

from evenhand.tools.search.base import Hit, hit
from evenhand.tools.search.html_text import text_of_html
from evenhand.tools.search.threads import in_thread
from evenhand.tools.search.wire import JsonApi, entries, words

WIKIPEDIA = "https://en.wikipedia.org/w/api.php"


class MediaWiki:
    """
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
