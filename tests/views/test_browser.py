"""T16: what a model said runs nothing and fetches nothing in a browser that shows an export."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evenhand.views import html
from evenhand.views.blocks import Block, Grid, Line

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_TEMPLATES = [
    "<script>MARK</script>",
    "<img src=x onerror=MARK>",
    "<img src=URL>",
    "<svg onload=MARK>",
    "<svg><script>MARK</script></svg>",
    "<iframe src=URL></iframe>",
    "<iframe srcdoc='<script>parent.MARK</script>'></iframe>",
    "<body onload=MARK>",
    "<details open ontoggle=MARK>",
    "<video><source onerror=MARK src=URL></video>",
    "<link rel=stylesheet href=URL>",
    "<style>@import 'URL';</style>",
    "<object data=URL></object>",
    "<meta http-equiv=refresh content='0;url=URL'>",
    "<base href=URL><script src=x></script>",
    "<input autofocus onfocus=MARK>",
    "<math><mtext><script>MARK</script>",
    "<a href=javascript:MARK autofocus onfocus=MARK>x</a>",
    "<script src=URL></script>",
    "<form action=URL><button autofocus onfocus=MARK>",
]
_BEFORE = ["", '">', "'>", "</td>", "</p></div>", "</title>", "</style>", "--><!--", "&lt;", "]]>"]


def _payloads(port: int) -> list[str]:
    made = []
    for number, (before, template) in enumerate((b, t) for b in _BEFORE for t in _TEMPLATES):
        mark = f"document.documentElement.setAttribute('ran','{number}')"
        url = f"http://127.0.0.1:{port}/{number}"
        made.append(before + template.replace("MARK", mark).replace("URL", url))
    return made


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


def _opened(page: str, folder: Path) -> str:
    """The document as the browser has it after running what there is to run."""
    file = folder / "page.html"
    file.write_text(page)
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=2000",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_two_hundred_payloads_run_nothing_and_fetch_nothing(
    seen: tuple[int, list[str]], tmp_path: Path
) -> None:
    port, paths = seen
    payloads = _payloads(port)
    assert len(set(payloads)) == 200
    page: list[Block] = [Line(one) for one in payloads]
    page.append(Grid(tuple(payloads[:3]), tuple(zip(*[iter(payloads[:198])] * 3, strict=True))))
    held = _opened(html.document(page, payloads[0]), tmp_path)
    assert "<html ran=" not in held
    assert paths == []
    assert held.count("&lt;script&gt;") >= 40  # it shows them
    # The same unescaped, and without the policy, both runs and fetches: the test can fail.
    bare = _opened(f"<!doctype html><html><body>{payloads[0]}{payloads[2]}</body>", tmp_path)
    assert '<html ran="0">' in bare
    assert paths == ["/2"]
