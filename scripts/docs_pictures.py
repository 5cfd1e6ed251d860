"""Photograph the report and the viewer for docs/reports.md, light and dark:
`python scripts/docs_pictures.py docs/images`.

The runs are recorded ones: the report has the two that README shows, and the viewer the small ones
that the tests keep. It needs Chromium, the extras `report` and `view`, and Pillow, which makes the
files small."""

# One page at a time: nothing else waits while a file is written or the browser starts.
# ruff: noqa: ASYNC110, ASYNC220, ASYNC240

import asyncio
import base64
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from PIL import Image

from evenhand.experiments.dossiers import dossier_of
from evenhand.runs.store import RunReader
from evenhand.views import html, page_of
from evenhand.views.html import browser
from evenhand.views.viewer.browsing import RunBrowser
from evenhand.views.viewer.serving import Serving

KEPT = Path(__file__).parents[1] / "tests/same_numbers/kept"
RECORDED = Path(__file__).parents[1] / "recorded/qwen2.5-coder-1.5b/bbq440"
# What is read, and the folder that the pages name.
REPORTED = {RECORDED / "default": "runs/default", RECORDED / "detect_first": "runs/repaired"}
VIEWED = {
    KEPT / "bbq/default": "runs/before",
    KEPT / "bbq/self_debias_reprompting": "runs/after",
}
QUIET = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--remote-debugging-port=0")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the screen: its file, how large the screen is, and down to which part of the
    page it is scrolled."""

    name: str
    width: int
    height: int
    dark: bool = False
    at: str = ""


REPORT = (
    Picture("report", 1000, 1150),
    Picture("report-numbers-dark", 1000, 1000, dark=True, at="What changed"),
)
LIST = (Picture("view", 1000, 900),)
ITEM = Picture("view-item-dark", 1000, 900, dark=True, at="Conversation")


class Tab:
    """A page in a browser that is told what to do by the protocol of its developer tools."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._asked = 0

    async def tell(self, method: str, **values: Any) -> dict[str, Any]:
        """Give one order and wait for what comes of it; events in between are passed over."""
        self._asked += 1
        await self._socket.send_json({"id": self._asked, "method": method, "params": values})
        while (said := await self._socket.receive_json()).get("id") != self._asked:
            pass
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']}")
        return dict(said["result"])

    async def opened(self, address: str) -> None:
        """Open a page, without the bars of a window, and wait until it is there."""
        await self.tell("Emulation.setScrollbarsHidden", hidden=True)
        await self.tell("Page.navigate", url=address)
        while await self.run("document.readyState + location.href") != f"complete{address}":
            await asyncio.sleep(0.05)

    async def run(self, script: str) -> Any:
        found = await self.tell("Runtime.evaluate", expression=script, awaitPromise=True)
        return found["result"].get("value")

    async def photograph(self, picture: Picture, folder: Path) -> None:
        """Take the picture of the page that is open."""
        await self.tell("Emulation.setDeviceMetricsOverride", width=picture.width,
                        height=picture.height, deviceScaleFactor=1,
                        mobile=picture.width < 500)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if picture.dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])
        await self.run(
            f"""Promise.all([...document.images].map((one) => one.decode())).then(() => {{
              const heads = [...document.querySelectorAll("h2")];
              const part = heads.find((one) => one.textContent === {picture.at!r});
              part ? part.scrollIntoView() : scrollTo(0, 0);
            }})"""
        )
        shot = await self.tell("Page.captureScreenshot", format="png")
        made = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
        # A third of the bytes; rare colours, such as that of one verdict, stay as they are.
        small = made.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        small.save(folder / f"{picture.name}.png", optimize=True)


@asynccontextmanager
async def tab_of(profile: Path) -> AsyncIterator[Tab]:
    """Start a browser with an empty profile, and end it."""
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [browser(), *QUIET, *root, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            written = profile / "DevToolsActivePort"
            while not (written.is_file() and written.read_text().count("\n")):
                await asyncio.sleep(0.05)
            port = written.read_text().split()[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [one for one in await answer.json() if one["type"] == "page"]
                where = pages[0]["webSocketDebuggerUrl"]
                async with session.ws_connect(where, max_msg_size=0) as socket:
                    yield Tab(socket)
        finally:
            process.terminate()


async def main(folder: Path) -> None:
    """Photograph a report, a list of two compared runs, and one item of it."""
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as held, chdir(held):
        for kept, run in (REPORTED | VIEWED).items():
            shutil.copytree(kept, run)
        page = Path(held, "report.html")
        dossier = dossier_of([(RunReader(Path(run)), None) for run in REPORTED.values()])
        page.write_text(html.document(page_of(dossier, full=True), dossier.title), "utf-8")
        async with tab_of(Path(held, "profile")) as tab:
            await tab.opened(page.as_uri())
            for picture in REPORT:
                await tab.photograph(picture, folder)
            await _view(tab, folder)


async def _view(tab: Tab, folder: Path) -> None:
    runs = (RunReader(Path(run)) for run in ("runs/after", "runs/before"))
    browsed = RunBrowser(*runs)
    with Serving(browsed) as served:
        browsed.facets.ended(60)
        home = f"http://127.0.0.1:{served.port}/"
        await tab.tell("Network.setCookie", url=home, name=f"evenhand-view-{served.port}",
                       value=served.door.token)  # fmt: skip
        await tab.opened(home)
        for picture in LIST:
            await tab.photograph(picture, folder)
        await tab.opened(f"{home}?move=other&changed=yes")
        await tab.opened(await tab.run("document.querySelector('article a').href"))
        await tab.photograph(ITEM, folder)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
