"""A page in a real browser, and what the browser and axe-core say of it."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = next(Path(__file__).parents[2].glob("node_modules/axe-core/axe.min.js"), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
needs_axe = pytest.mark.skipif(AXE is None, reason="no axe-core: npm install --no-save axe-core")

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
  const said = window.axe && await axe.run(document);
  const serious = said && said.violations.filter((one) => /serious|critical/.test(one.impact))
    .map((one) => [one.id, one.nodes[0].html]);
  const beyond = [await wide(360), await wide(1000)];
  const pictures = [...document.images].map((one) => one.naturalWidth);
  const dark = matchMedia("(prefers-color-scheme:dark)").matches;
  const answer = document.createElement("pre");
  answer.id = "answer";
  const checked = said && said.passes.map((one) => one.id);
  answer.textContent = JSON.stringify({beyond, pictures, serious, checked, dark});
  document.body.append(answer);
}
look();
</script>"""


def opened(page: str, folder: Path, *, dark: bool = False) -> str:
    """Give the document as the browser has it after running what there is to run."""
    file = folder / "page.html"
    file.write_text(page)
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
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


def looked_at(page: str, folder: Path, *, dark: bool = False) -> dict[str, Any]:
    """Say by how many pixels a page is wider than a narrow and a wide screen, how wide its pictures
    are, and what axe-core checked and found serious, if it is there."""
    free = re.sub(r'<meta http-equiv="content-security-policy"[^>]*>', "", page)
    assert free != page
    quoted = json.dumps(page).replace("</", "<\\/")
    script = _LOOK.replace("AXE", AXE.read_text() if AXE else "").replace("PAGE", quoted)
    held = opened(free.replace("</body>", f"{script}</body>"), folder, dark=dark)
    said = re.search(r'<pre id="answer">(.*?)</pre>', held)
    assert said is not None
    found: dict[str, Any] = json.loads(unescape(said[1]))
    assert found["dark"] == dark
    return found
