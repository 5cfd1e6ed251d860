"""SearXNG, a metasearch engine that one runs oneself. Its JSON format is off by default there:
`search: {formats: [html, json]}` in its settings.yml."""

from typing import Any

from evenhand.tools.search.base import Hit, hit
from evenhand.tools.search.wire import JsonApi, entries, words


class SearXNG:
    """
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
