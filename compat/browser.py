"""A page in headless Chromium, waited for until it shows what it has to show."""

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_SECONDS = 180


def shown(address: str, words: Sequence[str], picture: Path) -> None:
    """Open a page, wait until all these words can be read on it, and take a picture."""
    asyncio.run(_shown(address, words, picture))


async def _shown(address: str, words: Sequence[str], picture: Path) -> None:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = await asyncio.create_subprocess_exec(
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
            "--remote-debugging-port=0", f"--user-data-dir={profile}", address,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with aiohttp.ClientSession() as session:
                page = await _page(session, Path(profile, "DevToolsActivePort"))
                async with session.ws_connect(page, max_msg_size=0) as line:
                    await _look(line, words, picture)
        finally:
            browser.terminate()
            await browser.wait()


async def _page(session: aiohttp.ClientSession, said: Path) -> str:
    """Where the one page of a browser that is starting can be spoken to."""
    for _ in range(_SECONDS):
        await asyncio.sleep(1)
        if not said.is_file() or not said.read_text().strip():
            continue
        port = said.read_text().split()[0]
        async with session.get(f"http://127.0.0.1:{port}/json/list") as reply:
            pages = [one for one in await reply.json() if one["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"])
    raise AssertionError("the browser does not start")


async def _look(line: aiohttp.ClientWebSocketResponse, words: Sequence[str], picture: Path) -> None:
    numbers = itertools.count(1)

    async def told(method: str, **given: Any) -> Any:
        number = next(numbers)
        await line.send_json({"id": number, "method": method, "params": given})
        while True:
            said = json.loads((await line.receive()).data)
            if said.get("id") == number:
                return said["result"]

    until = time.monotonic() + _SECONDS
    text = ""
    while any(word not in text for word in words):
        assert time.monotonic() < until, f"the page does not show {words}: {text}"
        await asyncio.sleep(1)
        found = await told("Runtime.evaluate", expression="document.body.innerText")
        text = found["result"].get("value", "")
    picture.write_bytes(base64.b64decode((await told("Page.captureScreenshot"))["data"]))
