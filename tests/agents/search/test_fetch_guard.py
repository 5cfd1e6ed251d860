"""No page's address, however it is written, makes us connect to a machine that is not public."""

import asyncio
import encodings
import gzip
import ipaddress
import pickle
import pkgutil
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from evenhand.agents.tools.search.fetch import (
    AddressGuard,
    PageFetcher,
    _decoded,
    is_public,
    text_of_html,
)

from .servers import Answer, Engine, Honeypot, honeypot, serving, soon

PUBLIC = "93.184.215.14"
_RAW_CONNECT = socket.socket.connect

# Ways to write an address of this machine, or of one beside it.
HOSTS = """
127.0.0.1 127.1 127.0.1 127.0.0.2 127.255.255.254 127.0.0.1. 2130706433 017700000001 0177.0.0.1
0177.0.0.01 0x7f000001 0x7f.0x0.0x0.0x1 0x7f.1 00000000177.0.0.1 127.000.000.001 0 0.0.0.0 0x0
%31%32%37.0.0.1 127%2e0%2e0%2e1 127。0。0。1 １２７.０.０.１ ①②⑦.⓪.⓪.① localhost LOCALHOST
localhost. [::1] [::] [0:0:0:0:0:0:0:1]
[0000::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:0:127.0.0.1]
[::127.0.0.1] [::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1]
[2002:7f00:1::] [2002:7f00:0001::1] [2001:0:7f00:1::] [fe80::1] [fe80::1%25lo] [fec0::1] [fc00::1]
[fd00:ec2::254] [ff02::1] [::ffff:169.254.169.254] 169.254.169.254 2852039166 0xa9fea9fe
0251.0376.0251.0376 10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 192.0.0.1 198.18.0.1 224.0.0.1
240.0.0.1 255.255.255.255 inside.example both.example rebinding.example mapped.example
""".split()
# This machine, those beside it, and where a cloud keeps its secrets, each in every spelling.
PRIVATE = """
127.0.0.1 127.8.8.8 169.254.169.254 169.254.170.2 10.1.2.3 172.31.255.254 192.168.1.1
100.100.100.200 192.0.0.192 198.19.255.254
""".split()

NAMES = {
    "inside.example": [["127.0.0.1"]],
    "both.example": [[PUBLIC, "127.0.0.1", "::1"]],  # the second is tried where the first fails
    "rebinding.example": [[PUBLIC], ["127.0.0.1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "localhost": [["127.0.0.1", "::1"]],
    "127.0.0.1.": [["127.0.0.1"]],
}


class Names(AbstractResolver):
    """Answers as an attacker's name server would: another address each time it is asked. What it
    does not know it gives to the system, which reads numbers in every form."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answers = NAMES.get(host.lower())
        if answers is None:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
            addresses = [str(place[4][0]) for place in found]
        else:
            asked = self._asked[host] = self._asked.get(host, -1) + 1
            addresses = answers[min(asked, len(answers) - 1)]
        return [_resolved(host, address, port) for address in addresses]

    async def close(self) -> None:
        return None


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)


def spellings(address: str) -> list[str]:
    """The ways in which programs write, and some readers read, one IPv4 address."""
    number = int(ipaddress.IPv4Address(address))
    first, second, *_ = parts = number.to_bytes(4, "big")
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    return [
        address,
        str(number),
        f"{number:#x}",
        f"0{number:o}",
        ".".join(f"{part:#x}" for part in parts),
        ".".join(f"{part:#05o}".replace("o", "0") for part in parts),
        f"{first}.{number & 0xFFFFFF}",
        f"{first}.{second}.{number & 0xFFFF}",
        ".".join(f"%{ord(sign):x}" if sign.isdigit() else sign for sign in address),
        "".join(chr(ord(sign) + 0xFEE0) if sign.isdigit() else sign for sign in address),
        f"[::ffff:{address}]",
        f"[::{high}:{low}]",
        f"[::ffff:0:{address}]",
        f"[64:ff9b::{high}:{low}]",
        f"[64:ff9b:1::{high}:{low}]",
        f"[2002:{high}:{low}::1]",
    ]


def targets(port: int) -> list[str]:
    """Every host, and ways to hide one in the rest of an address."""
    spelt = [host for address in PRIVATE for host in spellings(address)]
    plain = [f"http://{host}:{port}/secret" for host in dict.fromkeys([*HOSTS, *spelt])]
    hidden = [
        f"http://example.org@127.0.0.1:{port}/",
        f"http://example.org:80@127.0.0.1:{port}/",
        f"http://example.org%40127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}#@example.org/",
        f"http://127.0.0.1:{port}?@example.org/",
        f"http://127.0.0.1:{port}\\@example.org/",
        f"http:\\\\127.0.0.1:{port}\\",
        f"http:127.0.0.1:{port}/",
        f"http:///127.0.0.1:{port}/",
        f"HTTP://127.0.0.1:{port}/",
        f"https://127.0.0.1:{port}/",
        f"//127.0.0.1:{port}/",
        f" http://127.0.0.1:{port}/ ",
        f"http://127.0.0.1:{port}/\r\nHost: example.org",
        f"ftp://127.0.0.1:{port}/",
        f"gopher://127.0.0.1:{port}/_GET",
        f"ws://127.0.0.1:{port}/",
        "file:///etc/passwd",
        "data:text/plain,secret",
        "unix:///var/run/docker.sock",
    ]
    return plain + hidden


def twice(urls: list[str]) -> list[str]:
    """Each of them, and those with a name again: it may answer otherwise the second time."""
    return urls + [url for url in urls if "example" in url or "localhost" in url.lower()]


def first_hop(path: str, given: Mapping[str, str]) -> Answer:
    """Says where it was told to send the visitor, with the status it was told."""
    return int(given["status"]), "text/html", b"<p>moved</p>"


async def visit(fetcher: PageFetcher, urls: list[str]) -> list[str]:
    got = [await fetcher.text(url, soon()) for url in urls]
    await fetcher.close()
    return [text for text in got if text is not None]


async def redirected(pot: Honeypot, guard: type[AddressGuard], status: int) -> list[str]:
    """Each target as the aim of a redirect from a place that may be visited."""
    got: list[str] = []
    async with serving(first_hop) as hop:
        port = int(hop.url.rpartition(":")[2])
        fetcher = PageFetcher(guard=guard(frozenset({("127.0.0.1", port)})), resolver=Names())
        for target in twice(targets(pot.port)):
            hop.moved_to = target.replace("\r\n", "%0d%0a")
            text = await fetcher.text(f"{hop.url}/?status={status}", soon())
            got += [text] if text is not None else []
        await fetcher.close()
        assert len(hop.asked) >= len(targets(pot.port))  # the first hop was reached each time
    return got


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that anything tried to connect to; those of this machine are let through,
    mapped ones too, which the usual fixture stops."""
    tried: list[str] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, place: Any) -> None:
        tried.append(place[0])
        if place[0].startswith("::ffff:127."):
            _RAW_CONNECT(self, place)
        else:
            connect(self, place)

    monkeypatch.setattr(socket.socket, "connect", watched)
    return tried


async def test_two_hundred_addresses_make_no_connection(attempts: list[str]) -> None:
    async with honeypot() as pot:
        urls = targets(pot.port)
        assert len(set(urls)) == len(urls) >= 200
        assert await visit(PageFetcher(resolver=Names()), twice(urls)) == []
        assert set(attempts) == {PUBLIC}  # where two of the names lead at first
        for status in (301, 302, 307):
            assert await redirected(pot, AddressGuard, status) == []
        assert set(attempts) == {PUBLIC, "127.0.0.1"}  # the first hop, at a port of its own
        assert pot.connections == 0


class _Unguarded(AddressGuard):
    def __call__(self, addr_info: Any) -> socket.socket:
        return socket.socket(*addr_info[:3])


async def test_without_the_guard_the_same_addresses_reach_the_honeypot(
    attempts: list[str],
) -> None:
    async with honeypot() as pot:
        got = await visit(
            PageFetcher(guard=_Unguarded(), resolver=Names()), twice(targets(pot.port))
        )
        assert "secret" in got
        assert len(set(attempts)) > 20
        assert pot.connections >= 20
        before = pot.connections
        assert "secret" in await redirected(pot, _Unguarded, 302)
        assert pot.connections > before + 10


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with honeypot() as pot:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{pot.port}")
        assert await visit(PageFetcher(resolver=Names()), [f"http://{PUBLIC}/"]) == []
        assert pot.connections == 0


@pytest.mark.parametrize(
    ("address", "public"),
    [
        (PUBLIC, True),
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("64:ff9b::808:808", True),  # how an IPv6-only network reaches 8.8.8.8
        ("::ffff:8.8.8.8", True),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("2002:808:808::", False),  # 6to4: nobody's road any more
        ("64:ff9b::a00:1", False),
        ("192.88.99.1", False),
        ("192.0.0.192", False),  # where one cloud keeps its machines' secrets
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("5f00::1", False),
        ("100::1", False),
        ("fec0::1", False),
        ("ff0e::1", False),
        ("not an address", False),
        ("2130706433", False),
    ],
)
def test_an_address_is_public_or_it_is_not(address: str, public: bool) -> None:
    assert is_public(address) is public


def page_server(kind: str, body: bytes, status: int = 200) -> Any:
    return serving(lambda path, given: (status, kind, body))


async def words_of(server: Engine) -> str | None:
    port = int(server.url.rpartition(":")[2])
    fetcher = PageFetcher(guard=AddressGuard(frozenset({("127.0.0.1", port)})))
    text = await fetcher.text(f"{server.url}/page", soon())
    await fetcher.close()
    return text


PAGE = (
    "<html><head><title>Wages</title></head><body><nav><a href='/'>Home</a></nav><article>"
    "<p>Women earn less in most countries, and the gap has been closing since 1970 in all of "
    "those for which there are figures.</p></article><script>steal()</script></body></html>"
)


async def test_a_page_gives_its_words_without_menus_and_scripts() -> None:
    async with page_server("text/html; charset=utf-8", PAGE.encode()) as server:
        text = await words_of(server)
    assert text is not None
    assert text.startswith("Women earn less")
    assert "steal" not in text


async def test_plain_text_is_taken_as_it_is() -> None:
    async with page_server("text/plain; charset=latin-1", "Löhne".encode("latin-1")) as server:
        assert await words_of(server) == "Löhne"


async def test_a_charset_that_no_page_has_a_use_for_is_not_used() -> None:
    """Python has a codec (punycode) that takes minutes for a megabyte, and the page chooses."""
    names = sorted(module.name for module in pkgutil.iter_modules(encodings.__path__))
    own = [name for name in names if _decoded(b"W\xc3\xa4ges-9a+AOQ-", name) != "Wäges-9a+AOQ-"]
    assert {"latin_1", "cp1252", "koi8_r", "shift_jis", "gb18030", "utf_16"} < set(own)
    slow_or_none = (
        "punycode idna utf_7 unicode_escape raw_unicode_escape rot_13 hex_codec zlib_codec"
    )
    assert set(slow_or_none.split()).isdisjoint(own)
    async with page_server("text/plain; charset=punycode", b"9" * 200_000) as server:
        assert await words_of(server) == "9" * 200_000
    async with page_server("text/plain; charset=no-such", "ä".encode()) as server:
        assert await words_of(server) == "ä"


async def test_a_page_that_is_slow_to_read_keeps_no_commit_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(page: bytes) -> str:
        reading.set()
        go_on.wait(30)
        return "read"

    monkeypatch.setattr("evenhand.agents.tools.search.fetch.text_of_html", slow)
    with ThreadPoolExecutor(1) as commits:  # the pool that a run writes its parts by
        asyncio.get_running_loop().set_default_executor(commits)
        async with page_server("text/html", PAGE.encode()) as server:
            page = asyncio.create_task(words_of(server))
            while not reading.is_set():
                await asyncio.sleep(0)  # and the loop goes on meanwhile
            committed = await asyncio.wait_for(asyncio.to_thread(lambda: not page.done()), 20)
            go_on.set()
            assert committed
            assert await page == "read"


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/pdf", b"%PDF", 200),
        ("image/png", b"\x89PNG", 200),
        ("text/html", PAGE.encode(), 404),
        ("text/html", PAGE.encode(), 500),
        ("text/plain", b"x" * (1024 * 1024 + 1), 200),
        ("text/html", b"", 200),
    ],
    ids="pdf image missing broken large empty".split(),
)
async def test_what_is_no_page_is_left_alone(kind: str, body: bytes, status: int) -> None:
    async with page_server(kind, body, status) as server:
        assert await words_of(server) is None


async def test_a_packed_answer_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    kind = "text/plain\r\ncontent-encoding: gzip"
    async with page_server(kind, packed) as server:
        assert await words_of(server) is None


async def test_more_than_three_redirects_are_not_followed() -> None:
    async with page_server("text/html", b"", 302) as server:
        server.moved_to = "/again"
        assert await words_of(server) is None
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 150_000,
        "<p>word </p>" * 80_000,
        "<ul><li>x</li></ul>" * 50_000,
        "<table>" * 50_000 + "x",
        "<a href='x'>" * 80_000,
        "&" * 1_000_000,
        "<!--" * 200_000,
    ],
    ids="divs paragraphs lists tables links signs comments".split(),
)
async def test_a_page_made_to_be_slow_ends_in_time(body: str) -> None:
    async with page_server("text/html", b"<html><body>" + body.encode()) as server:
        async with asyncio.timeout(9):
            await words_of(server)


def test_a_fetcher_travels_to_another_process() -> None:
    assert isinstance(pickle.loads(pickle.dumps(PageFetcher())), PageFetcher)


def test_of_a_page_of_links_all_words_are_taken_as_they_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = b"<html><body><p>" + b'<A\nhref="/x">link</a> word ' * 3_001
    monkeypatch.setattr("trafilatura.extract", None)  # 8 s, and growing with the square
    assert text_of_html(page) == " ".join(["link word"] * 3_001)
