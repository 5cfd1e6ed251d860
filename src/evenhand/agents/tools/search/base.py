"""What a search engine is, and how one takes a place in a cast.

A reply of the role `search` is this JSON and nothing else:

{"query": "as it left the machine; empty if nothing may leave",
 "engine": "mediawiki@1",
 "hits": [{"url": "…", "title": "…", "text": "…", "sha256": "of text", "fetched": false}]}

`fetched` says whose words `text` is: the page's own, fetched from `url`, or what the engine gave.
"""

import asyncio
import hashlib
import re
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeVar, TypeVarTuple

import orjson

from evenhand.agents.tools.search.privacy import clean
from evenhand.core import Usage
from evenhand.core.errors import DeadlinePassed, SearchFailed
from evenhand.models.base import ModelReply, ModelRequest, Sample

_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")
# Apart from the event loop's own threads: by those a run writes its parts, and a page that is slow
# to read must not keep them waiting.
_POOL = ThreadPoolExecutor(8, "evenhand-search")  # our choice: as many as pages come at once


async def in_thread(work: Callable[[*_Given], _T], *args: *_Given) -> _T:
    return await asyncio.get_running_loop().run_in_executor(_POOL, work, *args)


ROLE = "search"
MOST_HITS = 5  # our choice: what a rephraser of a small model can still read
MOST_TEXT = 1_500  # characters of a hit
_MOST_TITLE = 200
_MOST_URL = 500
_MOST_SECONDS = 30.0  # one search, however much time the item has left
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co"})  # control, invisible, half a pair, private
_SENTENCE = re.compile(r"[^\n.!?]+[\n.!?]*")
_WORD = re.compile(r"\w+")
_BLANKS = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True)
class Hit:
    url: str
    title: str
    text: str
    sha256: str  # of `text`, as it is quoted


class SearchEngine(Protocol):
    """Finds pages. Raises `SearchFailed`; an empty tuple means that there is nothing to find."""

    @property
    def name(self) -> str:
        """Kind and version of our reading of it, without its host: part of a request's hash."""
        ...

    @property
    def gives_pages(self) -> bool:
        """Its hits are the pages' own words, so that there is nothing left to fetch."""
        ...

    def describe(self) -> dict[str, Any]:
        """What `run.json` keeps of it: no key."""
        ...

    async def search(self, query: str, most: int, deadline: float) -> tuple[Hit, ...]: ...

    async def close(self) -> None: ...


class PageSource(Protocol):
    """Gives the words of a page, or None where it may not or cannot be read."""

    async def text(self, url: str, deadline: float) -> str | None: ...

    async def close(self) -> None: ...


class SearchModel:
    """A search engine as a member of a cast, so that what it finds is recorded, replayed and
    counted by the same conversation that asks the language models.

    The system message, if there is one, is the text whose names must not leave; the first user
    message is the query. With `pages`, the pages of hits that are only snippets are read.
    """

    def __init__(
        self, engine: SearchEngine, *, most: int = MOST_HITS, pages: PageSource | None = None
    ) -> None:
        self._engine = engine
        self._most = min(most, MOST_HITS)
        self._pages = None if engine.gives_pages else pages

    @property
    def name(self) -> str:
        return self._engine.name

    def describe(self) -> dict[str, Any]:
        description = {"kind": ROLE, "model": self.name, "most": self._most}
        return {**description, "pages": self._pages is not None, **self._engine.describe()}

    async def close(self) -> None:
        await self._engine.close()
        if self._pages is not None:
            await self._pages.close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        loop = asyncio.get_running_loop()
        started, clock = time.time_ns() // 1000, loop.time()
        deadline = clock + _MOST_SECONDS
        if request.deadline is not None:
            deadline = min(deadline, request.deadline)
        query = _query_of(request)
        hits = await self._found(query, deadline, request.deadline) if query else []
        reply = {"query": query, "engine": self.name, "hits": hits}
        return ModelReply(
            samples=(Sample(orjson.dumps(reply).decode()),),
            usage=Usage(0, 0),
            served_by=self.name,
            started_us=started,
            seconds=loop.time() - clock,
        )

    async def _found(
        self, query: str, deadline: float, last: float | None
    ) -> list[dict[str, str | bool]]:
        try:
            async with asyncio.timeout_at(deadline):
                hits = await self._engine.search(query, self._most, deadline)
        except TimeoutError:
            if last is not None and last <= deadline:
                raise DeadlinePassed(f"{self.name}: the item's time ended in a search") from None
            raise SearchFailed(f"{self.name}: no answer within {_MOST_SECONDS:g} s") from None
        return await asyncio.gather(
            *(self._quoted(hit, query, deadline) for hit in hits[: self._most])
        )

    async def _quoted(self, hit: Hit, query: str, deadline: float) -> dict[str, str | bool]:
        """The hit with its page's own words, if they are asked for and can be had."""
        page = None if self._pages is None else await self._pages.text(hit.url, deadline)
        if page is None:
            return {**asdict(hit), "fetched": False}
        quoted = await in_thread(with_text, hit, page, query)
        return {**asdict(quoted), "fetched": True}


def _query_of(request: ModelRequest) -> str:
    context = "\n".join(message.content for message in request.messages if message.role == "system")
    query = next(message.content for message in request.messages if message.role == "user")
    return clean(query, context)


def hit(url: str, title: str, text: str, query: str) -> Hit:
    """Make what an engine found safe to quote: visible characters only, and not too many.

    Args:
        url: The address of the page.
        title: The title of the page.
        text: The page's text or the engine's excerpt.
        query: The search query, which decides the passage that is kept of a long text.

    Returns:
        The hit, with each field cut to its limit.
    """
    bare = Hit(_visible(url)[:_MOST_URL], _visible(title)[:_MOST_TITLE], "", "")
    return with_text(bare, text, query)


def with_text(bare: Hit, text: str, query: str) -> Hit:
    quoted = passage(_visible(text), query, MOST_TEXT)
    return replace(bare, text=quoted, sha256=hashlib.sha256(quoted.encode()).hexdigest())


def passage(text: str, query: str, most: int) -> str:
    """Cut a text to a passage that starts at the sentence with the most words of the query.

    Args:
        text: The text to cut.
        query: The search query; letter case does not matter.
        most: The most characters to keep.

    Returns:
        The passage, or the text itself if it is short enough.
    """
    if len(text) <= most:
        return text
    query_words = set(query.casefold().split())
    best, begin = -1, 0
    for sentence in _SENTENCE.finditer(text):
        shared = len(query_words.intersection(_WORD.findall(sentence[0].casefold())))
        if shared > best:
            best, begin = shared, sentence.start()
    begin = min(begin, len(text) - most)  # the last sentences bring those before them along
    return text[begin : begin + most].strip()


def _visible(text: str) -> str:
    """Without what a reader cannot see and a model can: it could carry instructions."""
    unseen = {ord(sign) for sign in set(text) if unicodedata.category(sign) in _UNSEEN}
    visible = text.translate(dict.fromkeys(unseen - {ord("\n")}))
    return _BLANKS.sub(" ", visible).strip()
