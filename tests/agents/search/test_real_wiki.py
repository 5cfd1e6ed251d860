"""A real MediaWiki on loopback: Debian's package, SQLite, PHP's own server."""

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.agents import Cast
from evenhand.agents.tools.search import MediaWiki, PageFetcher, SearchModel
from evenhand.agents.tools.search.fetch import AddressGuard
from evenhand.runs.runners import replay_of
from tests.methods.mabrf_lines import planned
from tests.methods.test_mabrf_runs import ITEMS, ran, team

from .servers import asking, soon

CODE = Path("/usr/share/mediawiki")
PAGES = {
    "Older people": "'''Older people''' use [[technology]] more each year, as surveys of elderly "
    "show.\n\n== Details ==\nSmartphone ownership among older adults rose.",
    "Chess": "== Ratings ==\nThe gender gap in ''chess'' ratings follows from how few girls play.",
    "Chess clubs": "A '''chess club''' is a place where [[chess]] is played.",
}

pytestmark = pytest.mark.skipif(
    not (shutil.which("php") and CODE.is_dir()),
    reason="no MediaWiki here: apt-get install mediawiki php-cli php-sqlite3",
)


def _php(*arguments: str, folder: Path) -> None:
    command = ["php", *arguments]
    environment = {**os.environ, "MW_CONFIG_FILE": str(folder / "LocalSettings.php")}
    if "install.php" in arguments[0]:  # it refuses to run where there is a configuration
        del environment["MW_CONFIG_FILE"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _installed(folder: Path, port: int, extensions: str) -> None:
    (folder / "data").mkdir()
    place = ["--dbtype", "sqlite", "--dbpath", str(folder / "data"), "--dbname", "wiki"]
    address = ["--server", f"http://127.0.0.1:{port}", "--scriptpath", ""]
    more = ["--pass", "only-for-this-test", "--skins", "", "--extensions", extensions]
    install = str(CODE / "maintenance" / "install.php")
    _php(
        install, *place, *address, *more, "--confpath", str(folder), "Trial", "Admin", folder=folder
    )
    texts = folder / "texts"
    texts.mkdir()
    for title, text in PAGES.items():
        (texts / f"{title}.txt").write_text(text)
    files = [str(file) for file in sorted(texts.iterdir())]
    _php(str(CODE / "maintenance" / "importTextFiles.php"), *files, folder=folder)


@contextlib.contextmanager
def _wiki(folder: Path, extensions: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _installed(folder, port, extensions)
    server = subprocess.Popen(
        ["php", "-S", f"127.0.0.1:{port}", "-t", str(CODE)],
        env={**os.environ, "MW_CONFIG_FILE": str(folder / "LocalSettings.php")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise TimeoutError("PHP's server does not start")


@pytest.fixture(scope="module", params=["TextExtracts", ""], ids=["extracts", "plain"])
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _wiki(tmp_path_factory.mktemp("wiki"), request.param) as url:
        yield url


async def test_a_wiki_finds_pages_by_their_words_and_gives_their_text(wiki: str) -> None:
    engine = MediaWiki(f"{wiki}/api.php")
    (hit,) = await engine.search("elderly technology", 5, soon(60))
    assert (hit.title, hit.url) == ("Older people", f"{wiki}/index.php/Older_people")
    sentence = "Older people use technology more each year"
    assert sentence in hit.text
    (hit,) = await engine.search("gender gap chess", 5, soon(60))
    assert hit.title == "Chess"
    page = "Ratings\nThe gender gap in chess ratings follows from how few girls play."
    assert hit.text == (  # it has no introduction, so the whole page was asked for
        page
    )
    both = await engine.search("chess", 5, soon(60))
    assert {hit.title for hit in both} == {"Chess", "Chess clubs"}
    assert await engine.search("xyzzy", 5, soon(60)) == ()
    await engine.close()


async def test_a_search_through_a_cast_leaves_the_names_here(wiki: str) -> None:
    model = SearchModel(MediaWiki(f"{wiki}/api.php"), pages=PageFetcher())
    said = await model.complete(asking("is Okonkwo good at chess ratings", "Okonkwo plays."))
    await model.close()
    query = '"query":"is good at chess ratings"'
    assert query in said.samples[0].text
    said = await model.complete(asking("chess ratings", "Okonkwo plays."))
    await model.close()
    assert "The gender gap" in said.samples[0].text
    assert '"fetched":false' in said.samples[0].text  # the wiki gave the words itself


async def test_a_page_of_the_wiki_can_be_read_where_that_is_allowed(wiki: str) -> None:
    port = int(wiki.rpartition(":")[2])
    guarded, allowed = (
        PageFetcher(),
        PageFetcher(guard=AddressGuard(frozenset({("127.0.0.1", port)}))),
    )
    url = f"{wiki}/index.php/Older_people"
    assert await guarded.text(url, soon()) is None
    text = await allowed.text(url, soon())
    await guarded.close()
    await allowed.close()
    assert text is not None
    sentence = "Older people use technology more each year"
    assert sentence in text


async def test_a_run_that_searched_a_wiki_is_played_back_to_the_byte_with_the_network_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wiki").mkdir()
    with _wiki(tmp_path / "wiki", "TextExtracts") as url:
        engine = SearchModel(MediaWiki(f"{url}/api.php"))
        monkeypatch.setattr(
            "tests.methods.test_mabrf_runs.planned",
            lambda *_: planned("gender gap chess", "chess club"),
        )
        first = await ran(tmp_path / "run", Cast(team().default, {"search": engine}), ITEMS[:4])
        await engine.close()
    searches = first.turns().filter(role="search").collect()
    hits = [hit for (text,) in searches["texts"] for hit in json.loads(text)["hits"]]
    assert {hit["title"] for hit in hits} == {"Chess", "Chess clubs"}
    assert all(hit["sha256"] == hashlib.sha256(hit["text"].encode()).hexdigest() for hit in hits)

    def refused(*_: object) -> None:
        raise AssertionError("a replay makes no connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    second = await ran(tmp_path / "again", replay_of(tmp_path / "run"), ITEMS[:4])
    written, again = (
        [file.read_bytes() for file in sorted((tmp_path / name / "results").glob("*.parquet"))]
        for name in ("run", "again")
    )
    assert len(written) == 1
    assert written == again
    # Queries are asked side by side, so their turns are written in the order they come back.
    ours, theirs = (run.turns().sort("position", "index").collect() for run in (first, second))
    assert ours.equals(theirs)
