"""The words of a web page, without its menus."""

import logging
import re

from evenhand.errors import SearchFailed

# Our choice: its time grows with the square of some tags. 20,000 lists take 26 s, 4,900 links in
# one paragraph 2.5 s, 3,000 under 1 s.
_MOST_TAGS = 10_000
_MOST_LINKS = 3_000
_LINK = re.compile(rb"<a[\s>]", re.IGNORECASE)


def text_of_html(page: bytes) -> str:
    """The main text; of a page too short to have one, or too large, all its words. Slow: use a
    thread."""
    try:
        import trafilatura  # noqa: PLC0415
    except ImportError:
        raise SearchFailed(
            "reading web pages needs trafilatura: pip install 'evenhand[search]'"
        ) from None
    # It logs what it cannot read as errors, which end on the screen; to us that is an empty page.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    small = page.count(b"<") <= _MOST_TAGS and len(_LINK.findall(page)) <= _MOST_LINKS
    main = trafilatura.extract(page, include_comments=False) if small else None
    return main or " ".join((trafilatura.html2txt(page) or "").split())  # it breaks lines at <i>
