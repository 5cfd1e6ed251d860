"""R4: a server that says when to come back is believed, within what we are ready to wait."""

import asyncio
import email.utils
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from evenhand.core import Message
from evenhand.core.errors import ModelBusy
from evenhand.models.base import ModelRequest
from tests.errors import raises_naming
from tests.loopback.faulty import well
from tests.loopback.http import Call, Line
from tests.loopback.kernel import run_items, texts

from .conftest import Connect, Serve

ASK = ModelRequest(messages=(Message("user", "Hello."),))
FULL_JITTER = 0.25  # the longest pause before a second attempt when no wait was asked for


@dataclass
class Busy:
    """Turns the first `times` attempts away with these headers, then answers."""

    headers: Mapping[str, str]
    times: int = 1
    status: int = 429
    turned_away: list[float] = field(default_factory=list)  # by the clock on the wall

    async def __call__(self, call: Call, line: Line) -> str:
        if len(self.turned_away) >= self.times:
            return await well(call, line)
        self.turned_away.append(time.time())
        error = {"error": {"message": "come back later"}}
        await line.send_json(error, status=self.status, headers=self.headers)
        return "busy"


@pytest.mark.parametrize(
    ("headers", "least"),
    [
        pytest.param({"retry-after": "1"}, 1.0, id="seconds"),
        pytest.param({"retry-after": "0.4"}, 0.4, id="fraction"),
        pytest.param({"retry-after": " 0.4 "}, 0.4, id="spaces"),
        pytest.param({"retry-after-ms": "400"}, 0.4, id="milliseconds"),
        pytest.param({"retry-after-ms": "400", "retry-after": "0"}, 0.4, id="both"),
        pytest.param({"retry-after-ms": "soon", "retry-after": "0.4"}, 0.4, id="one-readable"),
        pytest.param({"retry-after": "0"}, 0.0, id="zero"),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_no_attempt_is_made_before_the_time_the_server_asked_for(
    headers: Mapping[str, str], least: float, status: int, serve: Serve, connect: Connect
) -> None:
    server = await serve(Busy(headers, status=status))
    reply = await connect(server.url).complete(ASK)
    (times,) = server.counts.received.values()
    assert reply.attempts == 2
    assert least <= times[1] - times[0] <= least + 1.0


async def test_each_of_several_waits_is_sat_out(serve: Serve, connect: Connect) -> None:
    server = await serve(Busy({"retry-after-ms": "200"}, times=4))
    reply = await connect(server.url).complete(ASK)
    (times,) = server.counts.received.values()
    assert reply.attempts == 5
    assert all(after - before >= 0.2 for before, after in pairwise(times))


async def test_an_http_date_is_waited_for(serve: Serve, connect: Connect) -> None:
    moment = int(time.time()) + 2  # a date has whole seconds: 1 to 2 s from now
    behaviour = Busy({"retry-after": email.utils.formatdate(moment, usegmt=True)}, times=99)

    async def until_then(call: Call, line: Line) -> str:
        behaviour.times = 99 if time.time() < moment else 0
        return await behaviour(call, line)

    server = await serve(until_then)
    reply = await connect(server.url).complete(ASK)
    assert reply.attempts == 2  # one attempt that was told the date, one after it; none between


@pytest.mark.parametrize(
    "asked",
    [
        "-5",
        "-1e9",
        "soon",
        "",
        "NaN",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Wed, 99 Oct 2015 99:28:00 GMT",
        "1;2",
        "\x00\x7fé",
    ],
)
async def test_a_wait_that_is_past_or_unreadable_is_like_none(
    asked: str, serve: Serve, connect: Connect
) -> None:
    server = await serve(Busy({"retry-after": asked}))
    reply = await connect(server.url).complete(ASK)
    (times,) = server.counts.received.values()
    assert reply.attempts == 2
    assert times[-1] - times[0] <= FULL_JITTER + 1.0


def _next_year() -> str:
    return email.utils.formatdate(time.time() + 365 * 86400, usegmt=True)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(lambda: {"retry-after": "1000000000"}, id="a-billion-seconds"),
        pytest.param(lambda: {"retry-after": "61"}, id="a-second-too-long"),
        pytest.param(lambda: {"retry-after-ms": "1000000000000"}, id="a-trillion-milliseconds"),
        pytest.param(lambda: {"retry-after": _next_year()}, id="next-year"),
        pytest.param(lambda: {"retry-after": "9" * 400}, id="four-hundred-digits"),
    ],
)
async def test_a_wait_beyond_the_cap_fails_the_item_at_once_with_its_reason(
    asked: Callable[[], Mapping[str, str]], serve: Serve, connect: Connect, tmp_path: Path
) -> None:
    server = await serve(Busy(asked(), times=10**9))
    started = asyncio.get_running_loop().time()
    ran = await run_items(connect(server.url), texts(3), tmp_path / "run")
    assert asyncio.get_running_loop().time() - started <= 2.0
    assert ran.reasons == ["model_busy"] * 3
    assert ran.turns["error"].to_list() == ["model_busy"] * 3
    assert ran.turns["attempts"].to_list() == [1] * 3  # not one attempt was made early
    assert all("asks to wait" in message for message in ran.results["message"])


async def test_a_wait_that_outlasts_the_deadline_is_not_begun(
    serve: Serve, connect: Connect
) -> None:
    server = await serve(Busy({"retry-after": "30"}))
    started = asyncio.get_running_loop().time()
    request = ModelRequest(messages=ASK.messages, deadline=started + 5)
    with raises_naming(ModelBusy, 429, "30 s", "5 s"):
        await connect(server.url).complete(request)
    assert asyncio.get_running_loop().time() - started <= 1.0
    assert server.counts.requests == 1
