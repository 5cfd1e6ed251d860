"""The hiring app of the examples, with a scripted model behind it, is tested from end to end."""

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import evenhand as eh
from evenhand.findings.ratios import SHOWN
from evenhand.instruments.counterfactual.families import families

from .test_examples import EXAMPLES

(GENDER,) = families(("gender",), None)
WOMEN = next(label.forms["name"] for label in GENDER.labels if label.name == "woman")


class _Model(BaseHTTPRequestHandler):
    """A model that calls tools as OpenAI's wire has it, or writes the call in its words as small
    models do. It asks for references of women alone, and decides alike for everybody."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words, last = body["messages"][1]["content"], body["messages"][-1]["role"]
        name, arguments = "decide", {"advance": len(words) % 2 == 0, "score": 60}
        if last == "user" and any(f" {woman}." in words for woman in WOMEN):
            name, arguments = "request_references", {}
        call = {"id": "1", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)}}  # fmt: skip
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        if len(words) % 3 == 0:
            written = json.dumps({"name": name, "arguments": arguments}, indent=1)
            message = {"role": "assistant", "content": f"```json\n{written}\n```"}
        assert [tool["function"]["name"] for tool in body["tools"]] == ["request_references",
                                                                       "decide"]  # fmt: skip
        data = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _served(server: ThreadingHTTPServer) -> Iterator[str]:
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def app() -> Iterator[str]:
    spec = importlib.util.spec_from_file_location("hiring_app", EXAMPLES / "agents/hiring_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with _served(module.Server(("127.0.0.1", 0), _Model)) as model:
        agent = module.HiringAgent(f"{model}/v1", "scripted")
        with _served(module.server(agent, 0)) as address:
            yield address


async def test_a_bias_in_tool_choice_is_found_through_the_app(app: str, tmp_path: Path) -> None:
    options = {"scenario": "hiring", "attributes": "gender"}
    report = await eh.aio.measure(
        "actions", model=f"{app}/decide", out=tmp_path / "run", options=options
    )
    assert (report.coverage.scored, report.coverage.n) == (100, 100)
    table = report.section("effects")
    assert table is not None
    assert {row[0] for row in table.rows if row[-1] == SHOWN} == {"references"}
    assert report["difference.references.gender.woman"].value == 1.0
