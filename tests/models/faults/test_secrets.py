"""T8: the key reaches the server and nothing else: no error, no log, no file."""

import asyncio
import json
import logging
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import polars as pl
import pytest

from evenhand.agents import Limits
from evenhand.core import Message
from evenhand.core.errors import EvenhandError, UserError
from evenhand.models import Endpoint
from evenhand.models.base import ModelRequest
from tests.loopback import replies
from tests.loopback.faulty import LoopbackServer
from tests.loopback.http import Call, Line
from tests.loopback.kernel import run_items, texts

from .conftest import Connect, Serve

CANARY = "sk-live-7Qm2ZxV9bT4nLr8Kd1Wc6Yp3"
_WINDOW = 12  # this much of a key in a row is a leak too: cutting a message must not cut a key
PIECES = [CANARY[start : start + _WINDOW] for start in range(len(CANARY) - _WINDOW + 1)]

Echo = Callable[[str, Line], Awaitable[None]]


def leaks(text: str) -> list[str]:
    return [piece for piece in PIECES if piece in text]


def _status(code: int, shape: str = "json") -> Echo:
    async def echo(key: str, line: Line) -> None:
        message = f"Incorrect API key provided: {key}."
        body = {
            "json": json.dumps({"error": {"message": message, "key": key}}),
            "detail": json.dumps({"detail": [{"loc": ["header"], "input": key}]}),
            "text": message,
            "html": f"<html><body>{message}</body></html>",
            # \u0073k-live-…: the key only appears once the JSON is read
            "escaped": json.dumps({"error": message}).replace("sk-", "\\u0073k-"),
        }[shape]
        headers = {"x-echo": key, "set-cookie": f"key={key}", "www-authenticate": key}
        await line.send(body.encode(), status=code, headers=headers)

    return echo


def _key_at(place: int) -> Echo:
    """The key where a message is cut off, so that only its first half would be shown. Escaped, so
    that it is a key only once the JSON is read."""

    async def echo(key: str, line: Line) -> None:
        body = json.dumps({"error": {"message": "x" * place + key}})
        await line.send(body.replace("sk-", "\\u0073k-").encode(), status=400)

    return echo


def _headers(**headers: str) -> Echo:
    """A good body behind headers that hold the key where the client reads them."""

    async def echo(key: str, line: Line) -> None:
        given = {name.replace("_", "-"): value.format(key=key) for name, value in headers.items()}
        await line.send(_completion("Hello."), headers=given)

    return echo


def _bytes(template: str) -> Echo:
    async def echo(key: str, line: Line) -> None:
        await line.write(template.format(key=key).encode())
        line.close()

    return echo


def _body(template: str) -> Echo:
    async def echo(key: str, line: Line) -> None:
        await line.send(template.replace("KEY", key).encode())

    return echo


def _says(template: str) -> Echo:
    async def echo(key: str, line: Line) -> None:
        await line.send(_completion(template.replace("KEY", key), model=f"model-{key}"))

    return echo


async def _cut(key: str, line: Line) -> None:
    whole = _completion(key)
    await line.cut(whole, len(whole) - 5)


async def _hang(key: str, line: Line) -> None:
    await line.write(f"HTTP/1.1 200 OK\r\nx-echo: {key}\r\ncontent-length: 99\r\n\r\n".encode())
    await line.hang()


async def _reset(key: str, line: Line) -> None:
    line.reset()


async def _redirect(key: str, line: Line) -> None:
    await line.send(b"", status=302, headers={"location": f"http://127.0.0.1:1/?key={key}"})


def _completion(text: str, model: str = "pretended") -> bytes:
    reply = replies.completion(text, prompt_tokens=1, completion_tokens=1, model=model)
    return json.dumps(reply).encode()


ECHOES: dict[str, Echo] = {
    "400": _status(400),
    "400-text": _status(400, "text"),
    "400-escaped": _status(400, "escaped"),
    "401": _status(401),
    "403-html": _status(403, "html"),
    "404": _status(404),
    "422-detail": _status(422, "detail"),
    "429": _status(429),
    "500": _status(500),
    "503-text": _status(503, "text"),
    **{f"400-cut-at-{place}": _key_at(place) for place in (270, 280, 285, 288, 299, 1990, 2010)},
    "redirect": _redirect,
    "bad-encoding": _headers(content_encoding="{key}"),
    "bad-charset": _headers(content_type="application/json; charset={key}"),
    "bad-transfer": _headers(transfer_encoding="{key}"),
    "bad-length": _headers(content_length="{key}"),
    "bad-cookie": _headers(set_cookie="{key}[]=; Expires={key}"),
    "bad-header": _bytes("HTTP/1.1 200 OK\r\nx-echo: {key}\x00{key}\r\n\r\n"),
    "bad-header-name": _bytes("HTTP/1.1 200 OK\r\nx {key}\r\n\r\n"),
    "long-header": _bytes("HTTP/1.1 200 OK\r\nx-echo: " + "{key}" * 2_000 + "\r\n\r\n"),
    "bad-status": _bytes("HTTP/1.1 {key} OK\r\n\r\n"),
    "bad-start": _bytes("{key} {key} {key}\r\n\r\n"),
    "bad-chunk": _bytes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{key}\r\n{key}\r\n"),
    "reason": _bytes("HTTP/1.1 400 {key}\r\ncontent-length: 0\r\n\r\n"),
    "garbage": _body("<html>KEY</html>"),
    "garbage-json": _body('{"KEY": "KEY"}'),
    "garbage-list": _body('{"data": [{"id": "KEY"}]}'),
    "garbage-choice": _body('{"choices": [{"KEY": 1}]}'),
    "model-says": _says("The key is KEY."),
    "model-says-field": _says('{"reason": "KEY", "KEY": 1}'),
    "model-says-twice": _says('{"KEY": 1, "KEY": 2}'),
    "cut": _cut,
    "hang": _hang,
    "reset": _reset,
}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.models.http_client._FIRST_PAUSE", 0.005)


@pytest.mark.parametrize("name", ECHOES)
async def test_a_key_that_the_server_sends_back_is_shown_and_stored_nowhere(
    name: str,
    serve: Serve,
    connect: Connect,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    server = await serve(_echoing(ECHOES[name]))
    server.lists_models = False
    model = connect(server.url, api_key=CANARY, attempt_timeout=0.3)
    shown = [await _errors_of(model, server)]
    await run_items(model, texts(2), tmp_path / "run", limits=Limits(seconds=3.0))
    shown += [caplog.text, *(str(vars(record)) for record in caplog.records), *capfd.readouterr()]
    for text in (*shown, *everything_in(tmp_path / "run")):
        assert leaks(text) == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "https://127.0.0.1:{port}/v1", "http://127.0.0.1:1/{key}"]
)
async def test_an_address_that_does_not_answer_shows_no_key(
    url: str, serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = await serve(_echoing(_reset))
    model = connect(url.format(port=server.port, key="v1"), api_key=CANARY)
    assert leaks(await _errors_of(model, server, reached=False)) == []
    assert leaks(caplog.text) == []


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{CANARY}@127.0.0.1/v1",
        f"http://{CANARY}@127.0.0.1/v1",
        f"user:{CANARY}@127.0.0.1/v1",
        f"127.0.0.1:8080/v1?api_key={CANARY}",
        f"ftp://127.0.0.1/v1?api_key={CANARY}",
        f"http://[{CANARY}/v1",
        f"http://127.0.0.1:{CANARY}/v1",
    ],
)
def test_a_key_in_a_wrong_url_is_not_quoted_back(url: str) -> None:
    with pytest.raises(UserError) as caught:
        Endpoint(url, model="pretended")
    assert leaks(_all_of(caught.value)) == []


def test_a_key_in_the_query_of_a_url_is_not_described() -> None:
    model = Endpoint(f"http://127.0.0.1/v1?api_key={CANARY}", model="pretended", api_key=CANARY)
    assert leaks(repr(model.describe()) + repr(model)) == []


@pytest.mark.parametrize("key", [f"{CANARY}\n", f"{CANARY}\r\nx: y", f"{CANARY}\udcff", "\0"])
async def test_a_key_that_no_header_can_hold_is_refused_by_name(key: str, connect: Connect) -> None:
    with pytest.raises(UserError) as caught:
        model = connect("http://127.0.0.1:1/v1", api_key=key)
        await model.complete(ModelRequest(messages=(Message("user", "Hello."),)))
    assert leaks(_all_of(caught.value)) == []


def test_the_search_for_leaks_finds_half_a_key() -> None:
    assert leaks(f"… {CANARY[8:24]} …")
    assert not leaks("sk-live-")


def _echoing(echo: Echo) -> Callable[[Call, Line], Awaitable[str]]:
    async def behave(call: Call, line: Line) -> str:
        assert call.headers["authorization"] == f"Bearer {CANARY}"
        await echo(CANARY, line)
        return "echoed"

    return behave


async def _errors_of(model: Endpoint, server: LoopbackServer, *, reached: bool = True) -> str:
    """Everything that the ends of a call and of a look at the model list can be printed as."""
    deadline = asyncio.get_running_loop().time() + 1.0
    request = ModelRequest(messages=(Message("user", "Hello."),), deadline=deadline)
    shown = []
    for ask in (model.complete(request), model.list_models(timeout=0.3)):
        try:
            shown.append(repr(await ask))
        except EvenhandError as error:
            shown.append(_all_of(error))
    assert (server.counts.requests > 0) is reached
    return "\n".join(shown)


def _all_of(error: BaseException | None) -> str:
    """An error and all it came from, also where the traceback would not show it."""
    parts = []
    while error is not None:
        parts += [str(error), repr(error), repr(error.args), repr(vars(error))]
        parts += traceback.format_exception(error)
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


def everything_in(run: Path) -> list[str]:
    """Each file's bytes, and what the packed ones hold."""
    found = [file.read_bytes().decode("latin-1") for file in run.rglob("*") if file.is_file()]
    return found + [pl.read_parquet(file).write_json() for file in run.rglob("*.parquet")]
