"""Web search for agents: one Protocol, an engine per file, and what may leave the machine."""

from evenhand.tools.search.base import Hit, SearchEngine, SearchModel
from evenhand.tools.search.brave import Brave
from evenhand.tools.search.corpus import Corpus
from evenhand.tools.search.duckduckgo import DuckDuckGo
from evenhand.tools.search.fetch import PageFetcher
from evenhand.tools.search.mediawiki import MediaWiki
from evenhand.tools.search.searxng import SearXNG

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
