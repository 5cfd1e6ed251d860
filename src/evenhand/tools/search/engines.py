"""How each search engine of the config is built from its settings.

A search engine of another package is registered in the same form: a function from `SearchSettings`
to a `SearchEngine`, under the name that the engine itself has before its "@".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evenhand.errors import UserError
from evenhand.models.keys import origin
from evenhand.tools.search.base import SearchEngine
from evenhand.tools.search.brave import URL as BRAVE
from evenhand.tools.search.brave import Brave
from evenhand.tools.search.corpus import Corpus
from evenhand.tools.search.duckduckgo import DuckDuckGo
from evenhand.tools.search.mediawiki import WIKIPEDIA, MediaWiki
from evenhand.tools.search.searxng import SearXNG

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
