"""The command: what it prints, how it ends, and what it says where the extra is missing."""

import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from evenhand.cli.serving import view
from evenhand.core.errors import UserError
from tests.errors import raises_naming


def test_it_prints_its_address_opens_nothing_and_ends_with_ctrl_c(large: Path) -> None:
    code = "from evenhand.cli import main; main()"
    command = [sys.executable, "-c", code, "runs", "view", str(large), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        place, _, token = link.removeprefix("http://").partition("/?token=")
        connection = HTTPConnection(place, timeout=60)
        connection.request("GET", f"/?token={token}")
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout.read() == ""
    assert place.startswith("127.0.0.1:")
    assert len(token) >= 43  # 32 bytes


def test_without_the_extra_it_says_what_to_install(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "evenhand.views.viewer.serving", raising=False)
    with raises_naming(UserError, "pip install 'evenhand[view]'"):
        view(str(large))


def test_what_is_no_run_folder_is_said(tmp_path: Path) -> None:
    with raises_naming(UserError, tmp_path, "run.json"):
        view(str(tmp_path), no_open=True)
