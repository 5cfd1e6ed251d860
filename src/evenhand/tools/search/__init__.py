"""Web search for agents: one Protocol, its engines, and what may leave the machine."""

from evenhand.tools.search.base import Hit, SearchEngine, SearchModel
from evenhand.tools.search.corpus import Corpus
from evenhand.tools.search.engines import Brave, DuckDuckGo, MediaWiki, SearXNG
from evenhand.tools.search.fetch import PageFetcher

__all__ = [
    "Brave",
    "Corpus",
    "DuckDuckGo",
    "Hit",
    "MediaWiki",
    "PageFetcher",
    "SearXNG",
    "SearchEngine",
    "SearchModel",
]
