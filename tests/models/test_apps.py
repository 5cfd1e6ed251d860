"""Apps under test: over HTTP, as a command, as a Python function."""

import asyncio
import json
import pickle
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from evenhand.core import Message
from evenhand.core.errors import ModelError, UserError
from evenhand.experiments import config as configuration
from evenhand.models import ModelRequest
from evenhand.models.libraries import open_by_name

ASKED = (Message("system", "You decide."), Message("user", "Ann Lee asks."))


async def _answer(name: str, *, seconds: float = 20.0, **settings: Any) -> str:
    model = open_by_name(name, attempt_timeout=seconds, **settings)
    model.max_attempts = 1
    async with model:
        deadline = asyncio.get_running_loop().time() + 30
        reply = await model.complete(ModelRequest(messages=ASKED, temperature=0.0,
                                                  deadline=deadline))  # fmt: skip
    return reply.samples[0].text


class _App(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = {"decision": {"advance": True, "about": body["messages"][-1]["content"]},
                 "fields": sorted(body), "key": self.headers.get("authorization")}  # fmt: skip
        data = json.dumps(reply).encode()
        self.send_response(200 if self.path == "/decide" else 422)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def app() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _App)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_an_http_app_gets_the_conversation_and_its_params_alone(app: str) -> None:
    whole = json.loads(await _answer(f"{app}/decide", params={"tenant": "a"}, api_key="k" * 20))
    assert whole["fields"] == ["messages", "tenant"]
    assert whole["decision"] == {"advance": True, "about": "Ann Lee asks."}
    part = await _answer(f"{app}/decide", params={"answer_at": "decision.about"})
    assert part == "Ann Lee asks."


@pytest.mark.parametrize("path", ["decide", "nowhere"])
async def test_a_reply_without_the_answer_is_an_error_and_no_answer(app: str, path: str) -> None:
    with pytest.raises(ModelError):
        await _answer(f"{app}/{path}", params={"answer_at": "decision.score"})


def _command(code: str) -> str:
    return f"command:{sys.executable} -c '{code}'"


async def test_a_command_reads_the_conversation_and_writes_its_answer() -> None:
    code = 'import json, sys; print(json.load(sys.stdin)["messages"][1]["content"].upper())'
    assert await _answer(_command(code)) == "ANN LEE ASKS."


async def test_a_command_that_fails_says_its_last_words() -> None:
    with pytest.raises(ModelError, match="code 3: no rules today"):
        await _answer(_command('import sys; sys.stderr.write("no rules today"); sys.exit(3)'))


async def test_a_command_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Its child would write a file two seconds later."""
    late = tmp_path / "late"
    child = f"import time; time.sleep(2); open({str(late)!r}, {'w'!r})"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, {'-c'!r}, {child!r}])"
    script = tmp_path / "agent.py"
    script.write_text(f"{code}; time.sleep(60)")
    with pytest.raises(ModelError):
        await _answer(f"command:{sys.executable} {script}", seconds=1.0)
    time.sleep(2.5)
    assert not late.exists()


def decide(request: dict[str, Any]) -> dict[str, Any]:
    return {"words": len(request["messages"][-1]["content"].split())}


async def decide_later(request: dict[str, Any]) -> str:
    if "fail" in request:
        raise ValueError("not today")
    return "later"


async def test_a_python_function_may_be_plain_or_async() -> None:
    assert await _answer(f"python:{__name__}:decide") == '{"words":3}'
    assert await _answer(f"python:{__name__}:decide_later") == "later"


async def test_what_a_function_raises_is_an_error_of_the_call() -> None:
    with pytest.raises(ModelError, match="ValueError: not today"):
        await _answer(f"python:{__name__}:decide_later", params={"fail": True})


@pytest.mark.parametrize("name", ["python:nowhere:decide", f"python:{__name__}:nothing", "command:",
                                  "http://", "http://user:secret@127.0.0.1/decide"])  # fmt: skip
def test_a_wrong_name_is_known_before_anything_is_asked(name: str) -> None:
    with pytest.raises(UserError):
        open_by_name(name)


def test_what_a_module_prints_when_it_is_imported_stays_off_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "greeting_agent.py").write_text("print('welcome')\ndef decide(request): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    open_by_name("python:greeting_agent:decide")
    assert capsys.readouterr() == ("", "welcome\n")


def test_a_found_config_may_not_start_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenhand.toml"
    file.write_text('[models.default]\nmodel = "command:./agent"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="may not start programs"):
        configuration.load(None, None, None)
    assert configuration.load(file, None, None).default_model().library == "command"
    assert configuration.load(file, None, None).default_model().named_url is None


def test_an_app_goes_to_another_process() -> None:
    model = pickle.loads(pickle.dumps(open_by_name(f"python:{__name__}:decide")))
    assert model.describe() == {"kind": "python", "model": f"python:{__name__}:decide"}
