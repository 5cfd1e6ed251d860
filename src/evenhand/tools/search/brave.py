"""Brave Search, an index of its own behind a key (header `X-Subscription-Token`)."""

import html
import re
from typing import Any

from evenhand.tools.search.base import Hit, hit
from evenhand.tools.search.wire import JsonApi, entries, words

URL = "https://api.search.brave.com/res/v1/web/search"
_TAG = re.compile(r"</?strong>")  # around the words of the query


class Brave:
    name = "brave@1"
    gives_pages = False

    def __init__(self, key: str, *, url: str = URL) -> None:
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
