"""Pages from the web, through a guard that connects to public addresses only.

A page's address comes from outside, so it may name a machine of this network: as a number, through
a redirect, or by a name that resolves to another address the second time. The guard therefore does
not look at names at all. It looks at the address of each connection, as the socket is made.
"""

import asyncio
import codecs
import ipaddress
import logging
import re
import socket
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from evenhand.agents.tools.search.base import in_thread
from evenhand.agents.tools.search.wire import AGENT
from evenhand.core.errors import SearchFailed
from evenhand.models.http_client import OwnSession, read_capped

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


_SECONDS = 10.0
_MOST_BODY = 1024 * 1024
_REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})
_AT_ONCE = 8
_HEADERS = {
    "accept": "text/html, text/plain",
    "accept-encoding": "identity",  # a megabyte can unpack to a gigabyte
    "user-agent": AGENT,
}
# Those of the web, by Python's names for them. The page chooses, and Python knows others that take
# minutes for a megabyte (punycode) or are not charsets at all (rot13).
_CHARSETS = frozenset(
    """
    ascii utf-8 utf-16 utf-16-le utf-16-be
    iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9
    iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 koi8-r koi8-u
    gb2312 gbk gb18030 big5 euc_jp shift_jis iso2022_jp euc_kr
    """.split()
)
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Not for the public internet, and not in every Python's own table. In the first a cloud keeps its
# secrets (192.0.0.192).
_REFUSED = tuple(
    ipaddress.ip_network(net)
    for net in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "2001::/32",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
)


def is_public(address: str) -> bool:
    """Whether an address, as a socket gets it, is one of the public internet."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(number, ipaddress.IPv6Address):
        if number.ipv4_mapped is not None:
            number = number.ipv4_mapped
        elif number in _NAT64:
            number = ipaddress.IPv4Address(number.packed[-4:])
        elif number not in _GLOBAL_UNICAST:
            return False
    if number.is_multicast or number.is_reserved or number.is_unspecified:
        return False
    return number.is_global and not any(number in net for net in _REFUSED)


class AddressGuard:
    """Makes sockets for public addresses, and for exactly those places that are `allowed`."""

    def __init__(self, allowed: frozenset[tuple[str, int]] = frozenset()) -> None:
        self._allowed = allowed

    def __call__(self, addr_info: Any) -> socket.socket:
        family, kind, proto, _, address = addr_info
        if not is_public(address[0]) and (address[0], address[1]) not in self._allowed:
            raise OSError(f"{address[0]} is not a public address")
        return socket.socket(family, kind, proto)


class PageFetcher(OwnSession):
    """Gives the words of a page, or None: refused, too slow, too large, not text."""

    def __init__(
        self, *, guard: AddressGuard | None = None, resolver: AbstractResolver | None = None
    ) -> None:
        self._guard = guard or AddressGuard()
        self._resolver = resolver

    async def text(self, url: str, deadline: float) -> str | None:
        if self._places is None:
            self._places = asyncio.Semaphore(_AT_ONCE)
        ends = min(deadline, asyncio.get_running_loop().time() + _SECONDS)
        try:
            async with asyncio.timeout_at(ends), self._places:
                return await self._fetch(URL(url))
        except (aiohttp.ClientError, OSError, ValueError):
            return None

    async def _fetch(self, url: URL) -> str | None:
        for _ in range(_REDIRECTS + 1):
            if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
                return None
            async with self._open().get(url, allow_redirects=False) as response:
                if response.status in _MOVED:
                    url = url.join(URL(response.headers.get("location", "")))
                    continue
                return await _words(response)
        return None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=_HEADERS,
                connector=aiohttp.TCPConnector(
                    socket_factory=self._guard, resolver=self._resolver, force_close=True
                ),
                timeout=aiohttp.ClientTimeout(total=_SECONDS, sock_connect=5),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,  # a proxy would connect where the guard cannot look
                auto_decompress=False,
            )
        return self._session


async def _words(response: aiohttp.ClientResponse) -> str | None:
    packed = response.headers.get("content-encoding", "identity") != "identity"
    if response.status != 200 or packed:
        return None
    if response.content_type not in ("text/html", "text/plain", "application/xhtml+xml"):
        return None
    body = await read_capped(response, _MOST_BODY)
    if body is None:
        return None
    if response.content_type == "text/plain":
        return await in_thread(_decoded, body, response.charset) or None
    return await in_thread(text_of_html, body) or None


def _decoded(body: bytes, declared: str | None) -> str:
    """The text by the charset that the page declares, if it is one of the web's, else by UTF-8."""
    try:
        charset = codecs.lookup(declared or "utf-8").name
    except (LookupError, ValueError):
        charset = "utf-8"
    return body.decode(charset if charset in _CHARSETS else "utf-8", "replace")
