"""A page is printed as a PDF by a browser that is on this machine."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from evenhand.core.errors import UserError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
          "msedge", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
          "/Applications/Chromium.app/Contents/MacOS/Chromium")  # fmt: skip
_SECONDS = 120
# Nothing is fetched, also not by the browser for itself; the page itself forbids every script.
_QUIET = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
          "--disable-component-update", "--disable-sync",
          "--host-resolver-rules=MAP * ~NOTFOUND", "--no-pdf-header-footer")  # fmt: skip


def browser() -> str:
    """Find a Chromium; `UserError` with what to do where there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise UserError(
            "a PDF is printed by Chromium, and there is none on this machine: install it (on "
            "Debian: apt-get install chromium) and give the command again, or write --out "
            "report.html and print that from any browser"
        )
    return program


def pdf(document: str) -> bytes:
    """Print a whole HTML file."""
    program = browser()
    with tempfile.TemporaryDirectory(prefix="evenhand-print-", ignore_cleanup_errors=True) as held:
        folder = Path(held)
        source, target = folder / "page.html", folder / "page.pdf"
        source.write_text(document, "utf-8")
        # As root it refuses to start within its sandbox.
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *_QUIET, *root, f"--user-data-dir={folder / 'profile'}",
                   f"--print-to-pdf={target}", source.as_uri()]  # fmt: skip
        try:
            ran = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{program} could not print the page: {error}; {_ELSE}") from None
        if ran.returncode or not target.is_file():
            last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
            reason = "".join(last) or f"it ended with code {ran.returncode}"
            raise UserError(f"{program} printed nothing: {reason}; {_ELSE}")
        return target.read_bytes()


_ELSE = "write --out report.html and print that from any browser"
