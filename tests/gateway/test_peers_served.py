"""Failures of other gateways that a served answer shows; test_wire_peers.py has the rest."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from evenhand.gateway.policy import CheckPolicy, Policy
from tests.gateway.speaking import BAD, Speaker, gateway, team, upstream

SET = ("performance=false", "max_iterations=1")
OWN = "overheard"  # what only agents say


def overheard(request: Any) -> str:
    """A team whose judge says something that nobody else does."""
    said = team(request)
    return said.replace('"the word"', f'"{OWN}"') if request.schema else said


@pytest.mark.parametrize("mode", ["hold", "window", "observe"])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_agents_say_among_themselves_is_no_part_of_the_answer(
    mode: Any, stream: bool
) -> None:
    policy = Policy(check=CheckPolicy(mode=mode, set=SET))
    async with upstream(Speaker()) as address, gateway(address, policy, overheard) as served:
        status, _, body = await served.ask(stream=stream)
        while not served.exchanges:
            await asyncio.sleep(0.01)
    assert status == 200
    assert OWN.encode() not in body
    turns = [turn for one in served.exchanges[0].verdicts for turn in one.turns]
    assert any(OWN in text for turn in turns for text in turn.texts)  # it was said, all the same


@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_of_a_blocked_answer_can_be_read_behind_the_block(stream: bool) -> None:
    def stubborn(request: Any) -> str:
        return f"Still {BAD}." if request.schema is None else '{"reason": "no", "harm": 99}'

    policy = Policy(check=CheckPolicy(set=SET))
    async with (
        upstream(Speaker()) as address,
        gateway(address, policy, stubborn) as served,
        aiohttp.ClientSession() as session,
    ):
        asked = {"model": "up", "stream": stream, "messages": [{"role": "user", "content": "?"}]}
        headers = {"evenhand-detail": "1"}
        async with session.post(
            f"{served.url}/chat/completions", json=asked, headers=headers
        ) as got:
            body, kept = await got.read(), str(got.headers)
            assert got.status == 400
        identity = got.headers["evenhand-id"]
        for path in (f"/chat/completions/{identity}", f"/responses/{identity}", "/responses"):
            async with session.get(f"{served.url}{path}") as later:
                assert later.status == 404
                body += await later.read()
    # Anthropic's clients read the type; OpenAI's leave it.
    assert set(json.loads(body.partition(b"}}")[0] + b"}}")) == {"error", "type"}
    assert BAD not in kept
    assert BAD.encode() not in body


async def test_a_repaired_answer_has_the_length_that_its_head_says() -> None:
    """The upstream's length is that of other words: a client would cut ours, or wait for more."""
    asked = b'{"model": "up", "messages": [{"role": "user", "content": "Tell me."}]}'
    async with upstream(Speaker()) as address, gateway(address) as served:
        host = served.url.removeprefix("http://").removesuffix("/v1")
        name, _, port = host.partition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: " + host.encode()
            + b"\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "
            + str(len(asked)).encode() + b"\r\n\r\n" + asked
        )  # fmt: skip
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    lines = [line.lower() for line in head.split(b"\r\n")]
    lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length")]
    if lengths:
        assert lengths == [len(body)]
    else:
        assert b"transfer-encoding: chunked" in lines
        body = _joined(body)
    assert json.loads(body)["choices"][0]["message"]["content"] == "A kind answer."


def _joined(chunks: bytes) -> bytes:
    """Read HTTP's chunks: a size in hexadecimal, so many bytes, until a size of 0."""
    body = b""
    while True:
        size, _, rest = chunks.partition(b"\r\n")
        if int(size, 16) == 0:
            return body
        body, chunks = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
