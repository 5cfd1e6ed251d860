"""Every code block of README and docs runs, in order, page by page, as a reader would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.as_command import as_command
from tests.cli.conftest import clean_environment, endpoint, warm

__all__ = ["endpoint"]  # the fixture

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Not run here: what installs, what serves until it is stopped, what names the reader's own server.
_ELSEWHERE = ("pip install", "serve-local", "https://your-endpoint", "make ")


def _blocks(page: Path) -> list[tuple[str, str]]:
    found = _BLOCK.findall(page.read_text())
    return [(kind, text) for kind, text in found if not any(word in text for word in _ELSEWHERE)]


def _data() -> dict[str, str]:
    return {"EVENHAND_DATA": os.environ.get("EVENHAND_DATA", str(ROOT.parent / "shared" / "data"))}


def _command(kind: str, text: str, url: str) -> list[str] | None:
    if kind == "bash":
        text = text.replace(". .venv/bin/activate\n", "")
        return ["bash", "-euo", "pipefail", "-c", text]
    if kind == "python":
        return [sys.executable, "-W", "error", "-c", text.replace("http://127.0.0.1:8080/v1", url)]
    if kind == "yaml":
        assert yaml.safe_load(text)
        return None
    assert kind in ("text", "toml", "json"), f"a block of an unknown kind: {kind}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_blocks_of_a_page_run(page: Path, tmp_path: Path, endpoint: str) -> None:
    at_hand = (Path(_data()["EVENHAND_DATA"]) / "bbq").is_dir()
    if "evenhand measure" in page.read_text() and not at_hand:
        pytest.skip("the page measures, and the data is not at hand (EVENHAND_DATA)")
    given = {**clean_environment(), "EVENHAND_BASE_URL": endpoint, **_data()}
    here = tmp_path / "here"
    here.mkdir()
    with as_command(warm(), tmp_path / "bin") as first:
        given["PATH"] = f"{first}:{given['PATH']}"
        for kind, text in _blocks(page):
            command = _command(kind, text, endpoint)
            if command is None:
                continue
            ran = subprocess.run(
                command,
                cwd=here,
                env=given,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert ran.returncode == 0, f"{page.name}:\n{text}\n{ran.stdout}\n{ran.stderr}"


def test_there_are_blocks_to_run() -> None:
    kinds = [kind for page in PAGES for kind, _ in _blocks(page)]
    assert kinds.count("python") >= 5
    assert kinds.count("bash") >= 6
