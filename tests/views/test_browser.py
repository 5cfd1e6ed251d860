"""T16: what a model said runs nothing and fetches nothing in a browser that shows an export; and
the page that is handed over can be read by everybody, on every screen and on paper."""

import random
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenhand.findings.combined_report import CombinedReport
from evenhand.views import charts, html, page_of
from evenhand.views.blocks import Block, Box, Details, Diff, Figure, Grid, Heading, Line
from tests.views.opened import looked_at, needs_axe, needs_browser, opened
from tests.views.payloads import payloads, poisoned

pytestmark = needs_browser


class _Seen(BaseHTTPRequestHandler):
    paths: list[str]

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def seen() -> Iterator[tuple[int, list[str]]]:
    """A port, and what was asked for there."""
    paths: list[str] = []
    handler = type("Handler", (_Seen,), {"paths": paths})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port, paths
        server.shutdown()
        thread.join()


def _in_any_order(texts: list[str]) -> Iterator[str]:
    draw = random.Random(0)
    while True:
        yield draw.choice(texts)


def test_two_hundred_payloads_in_every_text_of_a_report_run_nothing_and_fetch_nothing(
    seen: tuple[int, list[str]],
    tmp_path: Path,
    dossier: CombinedReport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port, paths = seen
    texts = payloads(port)
    assert len(set(texts)) == 200
    page: list[Block] = [Line(one) for one in texts]
    page.append(Grid(tuple(texts[:3]), tuple(zip(*[iter(texts[:198])] * 3, strict=True))))
    for one in texts:
        held = (Heading(one), Diff((("gone", one), ("new", one))))
        page += [Heading(one, 3), Figure(one, one, one), Details(one, (Box(held),))]
    # Within a picture too: a chart has the names of models and groups as its labels.
    labels = "".join(f"<text>{one}</text>" for one in texts)
    page.append(Figure("", "", f'<svg xmlns="http://www.w3.org/2000/svg">{labels}</svg>'))
    monkeypatch.setattr(charts, "installed", lambda: False)  # drawn above by hand: they take long
    report = page_of(poisoned(dossier, _in_any_order(texts)))
    shown = html.document([*report, *page], texts[0])
    held_by_browser = opened(shown, tmp_path)
    assert " ran=" not in held_by_browser.partition("<head>")[0]
    assert paths == []
    assert held_by_browser.count("&lt;script&gt;") >= 400  # it shows them
    # On the page of the report itself; a long text is cut.
    alone = html.document(report, "")
    assert sum(html.escape(one) in alone for one in texts) >= 150
    # The same unescaped, and without the policy, both runs and fetches: the test can fail.
    bare = opened(f"<!doctype html><html><body>{texts[0]}{texts[2]}</body>", tmp_path)
    assert '<html ran="0">' in bare
    assert paths == ["/2"]


_WIDE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="40">'
    '<rect width="900" height="40" fill="#0072b2"/></svg>'
)


@pytest.fixture(scope="module", params=["light", "dark"])
def report(
    request: pytest.FixtureRequest,
    dossier: CombinedReport,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What a browser and axe-core say of a report with pictures of 900 pixels."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charts, "installed", lambda: True)
        patched.setattr(charts, "charts_of", lambda _: (charts.Chart("a", "Title", "said", _WIDE),))
        page = html.document(page_of(dossier, full=True), dossier.title)
    return looked_at(page, tmp_path_factory.mktemp("look"), dark=request.param == "dark")


def test_a_page_is_never_wider_than_the_screen(report: dict[str, Any]) -> None:
    assert report["beyond"] == [0, 0]


def test_a_picture_is_shown_whatever_signs_it_is_written_with(report: dict[str, Any]) -> None:
    assert report["pictures"] == [900] * 6


@needs_axe
def test_axe_core_finds_nothing_serious(report: dict[str, Any]) -> None:
    assert report["serious"] == []
    assert {"color-contrast", "document-title", "image-alt"} <= {*report["checked"]}


def test_a_printed_page_holds_what_stands_behind_details_too(dossier: CombinedReport) -> None:
    page: list[Block] = [Heading("Title", 1), Details("more", (Line("a line"),) * 400)]
    closed = html.pdf(html.document(page[:1], "")), html.pdf(html.document(page, ""))
    assert all(made.startswith(b"%PDF-") for made in closed)
    pages = [len(re.findall(rb"/Type\s*/Page\b", made)) for made in closed]
    assert pages[0] == 1
    assert pages[1] > 3
