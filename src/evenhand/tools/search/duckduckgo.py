"""DuckDuckGo through the ddgs library, which reads its result pages: there is no public API.

The library says "No results found." for an empty answer, a captcha and an HTTP error alike. None of
them is told from the others, so all of them are `SearchFailed`.
"""

import asyncio
import math
from typing import Any

from evenhand.errors import SearchFailed
from evenhand.tools.search.base import Hit, hit
from evenhand.tools.search.threads import in_thread
from evenhand.tools.search.wire import words

_MOST_SECONDS = 15


class DuckDuckGo:
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
