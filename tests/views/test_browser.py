"""T16: what a model said runs nothing and fetches nothing in a browser that shows an export; and
the page that is handed over can be read by everybody, on every screen and on paper."""

import json
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evenhand.findings.dossier import Dossier
from evenhand.views import charts, html, page_of, printing
from evenhand.views.blocks import Block, Box, Details, Diff, Figure, Grid, Heading, Line
from views.payloads import payloads, poisoned

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = next(Path(__file__).parents[2].glob("node_modules/axe-core/axe.min.js"), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")


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
        timeout=800,
        check=True,
    )
    return done.stdout


def _in_any_order(texts: list[str]) -> Iterator[str]:
    draw = random.Random(0)
    while True:
        yield draw.choice(texts)


def test_two_hundred_payloads_in_every_text_of_a_report_run_nothing_and_fetch_nothing(
    seen: tuple[int, list[str]],
    tmp_path: Path,
    dossier: Dossier,
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
    held_by_browser = _opened(shown, tmp_path)
    assert " ran=" not in held_by_browser.partition("<head>")[0]
    assert paths == []
    assert held_by_browser.count("&lt;script&gt;") >= 400  # it shows them
    # On the page of the report itself; a long text is cut.
    alone = html.document(report, "")
    assert sum(html.escape(one) in alone for one in texts) >= 150
    # The same unescaped, and without the policy, both runs and fetches: the test can fail.
    bare = _opened(f"<!doctype html><html><body>{texts[0]}{texts[2]}</body>", tmp_path)
    assert '<html ran="0">' in bare
    assert paths == ["/2"]


_LOOK = """
<script>AXE</script><script>
function wide(width) {
  return new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:900px;border:0`;
    frame.onload = () => {
      const shown = frame.contentDocument.documentElement;
      done(shown.scrollWidth - shown.clientWidth);
    };
    frame.srcdoc = PAGE;
    document.body.append(frame);
  });
}
async function look() {
  const said = window.axe && await axe.run(document.querySelector("main"));
  const serious = said && said.violations.filter((one) => /serious|critical/.test(one.impact))
    .map((one) => [one.id, one.nodes[0].html]);
  const beyond = [await wide(360), await wide(1000)];
  const pictures = [...document.images].map((one) => one.naturalWidth);
  const answer = document.createElement("pre");
  answer.id = "answer";
  const checked = said && said.passes.length;
  answer.textContent = JSON.stringify({beyond, pictures, serious, checked});
  document.body.append(answer);
}
look();
</script>"""


_WIDE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="40">'
    '<rect width="900" height="40" fill="#0072b2"/></svg>'
)


@pytest.fixture(scope="module")
def looked_at(dossier: Dossier, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a browser and axe-core say of a report with pictures of 900 pixels."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charts, "installed", lambda: True)
        patched.setattr(charts, "charts_of", lambda _: (charts.Chart("a", "Title", "said", _WIDE),))
        page = html.document(page_of(dossier), dossier.title)
    free = re.sub(r'<meta http-equiv="content-security-policy"[^>]*>', "", page)
    assert free != page
    quoted = json.dumps(page).replace("</", "<\\/")
    script = _LOOK.replace("AXE", AXE.read_text() if AXE else "").replace("PAGE", quoted)
    held = _opened(free.replace("</body>", f"{script}</body>"), tmp_path_factory.mktemp("look"))
    said = re.search(r'<pre id="answer">(.*?)</pre>', held)
    assert said is not None
    found: dict[str, object] = json.loads(said[1].replace("&lt;", "<").replace("&gt;", ">")
                                          .replace("&amp;", "&"))  # fmt: skip
    return found


def test_a_page_is_never_wider_than_the_screen(looked_at: dict[str, object]) -> None:
    assert looked_at["beyond"] == [0, 0]


def test_a_picture_is_shown_whatever_signs_it_is_written_with(looked_at: dict[str, object]) -> None:
    assert looked_at["pictures"] == [900] * 6


@pytest.mark.skipif(AXE is None, reason="no axe-core: npm install --no-save axe-core")
def test_axe_core_finds_nothing_serious(looked_at: dict[str, object]) -> None:
    assert looked_at["serious"] == []
    assert isinstance(looked_at["checked"], int)
    assert looked_at["checked"] > 10


def test_a_printed_page_holds_what_stands_behind_details_too(dossier: Dossier) -> None:
    page: list[Block] = [Heading("Title", 1), Details("more", (Line("a line"),) * 400)]
    closed = printing.pdf(html.document(page[:1], "")), printing.pdf(html.document(page, ""))
    assert all(made.startswith(b"%PDF-") for made in closed)
    pages = [len(re.findall(rb"/Type\s*/Page\b", made)) for made in closed]
    assert pages[0] == 1
    assert pages[1] > 3
