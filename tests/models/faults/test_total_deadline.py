"""R8: the deadline is total. A read time-out starts again with every byte; a deadline does not."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from evenhand.core import Message
from evenhand.core.errors import DeadlinePassed
from evenhand.models.base import ModelRequest
from tests.loopback import replies
from tests.loopback.gauges import Lateness
from tests.loopback.http import Call, Line

from .conftest import Connect, Serve

SECONDS = 0.6
LATE = 0.1


async def _nothing(call: Call, line: Line) -> None:
    await line.hang()


async def _headers_and_no_body(call: Call, line: Line) -> None:
    await line.write(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
    await line.hang()


async def _half_a_body(call: Call, line: Line) -> None:
    await line.write(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"choices": [')
    await line.hang()


async def _dripped_body(call: Call, line: Line) -> None:
    await line.drip(b'{"choices": [' + b" " * 10_000, 0.01)


async def _dripped_headers(call: Call, line: Line) -> None:
    await line.drip_raw(b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 8_000, 0.01)


async def _dripped_chunks(call: Call, line: Line) -> None:
    await line.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await line.write(b"1\r\n \r\n")
        await asyncio.sleep(0.01)


async def _endless_interim_answers(call: Call, line: Line) -> None:
    while True:
        await line.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0.01)


async def _dripped_errors(call: Call, line: Line) -> None:
    await line.write(b"HTTP/1.1 500 Oh\r\ncontent-length: 9000\r\n\r\n")
    await line.drip_raw(b"x" * 9_000, 0.01)


STALLS: list[Callable[[Call, Line], Awaitable[None]]] = [
    _nothing,
    _headers_and_no_body,
    _half_a_body,
    _dripped_body,
    _dripped_headers,
    _dripped_chunks,
    _endless_interim_answers,
    _dripped_errors,
]


@pytest.mark.parametrize("stall", STALLS, ids=lambda stall: stall.__name__.strip("_"))
@pytest.mark.parametrize(
    "attempt_timeout", [pytest.param(120.0, id="one-attempt"), pytest.param(0.2, id="attempts")]
)
async def test_a_stalling_server_ends_at_the_deadline(
    stall: Callable[[Call, Line], Awaitable[None]],
    attempt_timeout: float,
    serve: Serve,
    connect: Connect,
) -> None:
    async def behave(call: Call, line: Line) -> str:
        await stall(call, line)
        return "stalled"

    server = await serve(behave)
    model = connect(server.url, attempt_timeout=attempt_timeout)
    late = await _late(model.complete, "Hello.")
    assert late <= LATE
    assert server.counts.requests >= 1


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_server_that_does_not_read_a_long_request_ends_at_the_deadline(
    connect: Connect, deaf_port: int
) -> None:
    model = connect(f"http://127.0.0.1:{deaf_port}/v1")
    late = await _late(model.complete, "Hello. " * 900_000)  # more than both socket buffers take
    assert late <= LATE


async def test_a_connection_that_never_opens_ends_at_the_deadline(
    connect: Connect, full_port: int
) -> None:
    model = connect(f"http://127.0.0.1:{full_port}/v1")
    assert await _late(model.complete, "Hello.") <= LATE


async def test_a_good_answer_just_before_the_deadline_is_taken(
    serve: Serve, connect: Connect
) -> None:
    async def slow(call: Call, line: Line) -> str:
        await asyncio.sleep(SECONDS / 2)
        await line.send_json(replies.proper(call.body))
        return "good"

    server = await serve(slow)
    reply = await connect(server.url).complete(_request("Hello."))
    assert reply.attempts == 1


def test_late_is_the_time_without_what_held_up_the_loop() -> None:
    lateness = Lateness()
    lateness.held = [(0.5, 1.25), (1.5, 1.75), (3.0, 9.0)]
    assert lateness.of(1.0, 2.0) == 0.5  # without 1.0 to 1.25 and 1.5 to 1.75
    assert lateness.of(5.0, 6.0) == 0.0
    assert lateness.of(2.0, 1.9) == pytest.approx(-0.1)


def _request(words: str) -> ModelRequest:
    deadline = asyncio.get_running_loop().time() + SECONDS
    return ModelRequest(messages=(Message("user", words),), deadline=deadline)


async def _late(complete: Callable[[ModelRequest], Awaitable[object]], words: str) -> float:
    """Seconds from the deadline to the error. Never much before it either: a stall is not busy."""
    request = _request(words)
    assert request.deadline is not None
    async with Lateness() as lateness:
        with pytest.raises(DeadlinePassed) as caught:
            await complete(request)
        ended = asyncio.get_running_loop().time()
    assert caught.value.reason == "deadline_passed"
    late = lateness.of(request.deadline, ended)
    print(f"{late * 1000:.1f} ms after the deadline, {caught.value.attempts} attempts")
    return late


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port whose owner takes connections and reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as plug:
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # of those it takes, too
        yield plug.getsockname()[1]


@pytest.fixture
def full_port() -> Iterator[int]:
    """A port whose queue of new connections is full: a further SYN is never answered."""
    with socket.socket() as plug:
        plug.bind(("127.0.0.1", 0))
        plug.listen(0)
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(plug.getsockname())
        yield plug.getsockname()[1]
        for caller in callers:
            caller.close()
