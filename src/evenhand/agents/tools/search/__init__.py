"""Web search for agents: one Protocol, its engines, and what may leave the machine."""

from evenhand.agents.tools.search.base import Hit, SearchEngine, SearchModel
from evenhand.agents.tools.search.corpus import Corpus
from evenhand.agents.tools.search.engines import Brave, DuckDuckGo, MediaWiki, SearXNG
from evenhand.agents.tools.search.fetch import PageFetcher

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
