"""Check whether a proxy of LiteLLM lets unrepaired words through.

The proxy is asked to have its model repeat a phrase that our guardrail takes out of every answer. A
client that still reads the phrase reads what was not repaired. How LiteLLM treats a guardrail that
rewrites depends on its version, its configuration, the route and on streaming, so each is tried.
"""

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import orjson

from evenhand.core.errors import UserError
from evenhand.models.http_client import plain_url, read_capped

_SECONDS = 120.0
_MOST_BODY = 4 * 1024 * 1024
_ROUTES = ("/v1/chat/completions", "/v1/responses")
# The fields in which both routes have words, and those in which a model thinks aloud.
_SPOKEN = ("content", "delta", "text", "output_text", "reasoning_content", "reasoning", "refusal")
_BEGINNING = 10  # characters of the phrase: a stream that breaks off after them has leaked too
_QUOTES = re.compile(r"""[\s"'`*.]+""")  # what a model may put around a phrase


@dataclass(frozen=True, slots=True)
class Passage:
    """One way through the proxy, and what a client read at its end."""

    route: str
    stream: bool
    found: Literal["repaired", "leaks", "inconclusive"]
    said: str


async def passages_of(
    url: str,
    *,
    model: str | None = None,
    key: str | None = None,
    trying: Callable[[str], AbstractAsyncContextManager[object]] = lambda _: nullcontext(),
) -> list[Passage]:
    """Ask a proxy to repeat a phrase that the guardrail replaces.

    It is asked on two routes, plain and streamed: four short calls.

    Args:
        url: The address of the proxy.
        model: A model of the proxy. Defaults to the first that it lists.
        key: A key of the proxy.
        trying: Surrounds each call; receives the name of the route.

    Raises:
        UserError: If the proxy does not answer or lists no model.
    """
    address = plain_url(
        url,
        no_address="this is not an address: give the proxy's, such as http://127.0.0.1:4000",
        tells_too_much="the address of the proxy must hold no password: name a --key-env",
    ).rstrip("/").removesuffix("/v1")  # fmt: skip
    headers = {"authorization": f"Bearer {key}"} if key else {}
    limit = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(headers=headers, timeout=limit) as session:
        try:
            name = model or await _first_model(session, address)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UserError(
                f"{address} does not answer ({type(error).__name__}): is the proxy up?"
            ) from None
        ways = [(route, stream) for route in _ROUTES for stream in (False, True)]
        passages = []
        for route, stream in ways:
            async with trying(way_through(route, stream)):
                passages.append(await _tried(session, address, name, route, stream))
    return passages


async def _first_model(session: aiohttp.ClientSession, address: str) -> str:
    async with session.get(f"{address}/v1/models") as response:
        body = await read_capped(response, _MOST_BODY)
    try:
        return str(orjson.loads(body or b"")["data"][0]["id"])
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        raise UserError(
            f"{address} lists no model (HTTP {response.status}): name one with --model, and a key "
            "of the proxy with --key-env"
        ) from None


async def _tried(
    session: aiohttp.ClientSession, address: str, model: str, route: str, stream: bool
) -> Passage:
    phrase = secrets.token_hex(8)
    prompt = f"Repeat this and say nothing else: evenhand-canary-{phrase}"
    body: dict[str, Any] = {"model": model, "stream": stream}
    body |= (
        {"input": prompt}
        if route.endswith("responses")
        else {"messages": [{"role": "user", "content": prompt}]}
    )
    try:
        async with session.post(f"{address}{route}", json=body) as response:
            read = await read_capped(response, _MOST_BODY)
    except (aiohttp.ClientError, TimeoutError) as error:
        return Passage(route, stream, "inconclusive", f"no answer ({type(error).__name__})")
    if response.status != 200 or read is None:
        return Passage(route, stream, "inconclusive", f"no answer to read (HTTP {response.status})")
    return Passage(route, stream, *judged(read, phrase))


def judged(body: bytes, phrase: str) -> tuple[Literal["repaired", "leaks", "inconclusive"], str]:
    """Say what a client read who joins the pieces of a stream as clients do.

    The guardrail gives one word for the whole answer, so that any other word is the model's own. A
    model that says more than the phrase is not taken for the canary, and is judged as any answer.
    """
    try:
        texts = joined(body)
    except RecursionError:
        return "inconclusive", "the answer is nested too deep to be read"
    canary, repaired = f"evenhand-canary-{phrase}", f"evenhand-repaired-{phrase}"
    for text in texts:
        others = _QUOTES.sub("", text.replace(canary, "").replace(repaired, ""))
        begun = len(others) >= _BEGINNING and canary.startswith(others)
        if begun or (canary in text and not others):
            return "leaks", "the phrase, or its beginning, came through unrepaired"
        if others and canary not in text and repaired in text:
            return "leaks", "other words than the guardrail's came through"
    if any(repaired in text for text in texts) and not any(canary in text for text in texts):
        return "repaired", "the guardrail's words came through, and no others"
    return "inconclusive", (
        "the model did not repeat the phrase and nothing else, or the guardrail is another. Try a "
        "--model that does as it is told"
    )


def joined(body: bytes) -> list[str]:
    """Every text of an answer, pieces of one kind joined in their order."""
    pieces: dict[str, list[str]] = {}
    for data in _objects(body):
        for field, text in _spoken(data):
            pieces.setdefault(field, []).append(text)
    return ["".join(texts) for texts in pieces.values()]


def _objects(body: bytes) -> Iterator[Any]:
    lines = [line[5:] for line in body.split(b"\n") if line.startswith(b"data:")] or [body]
    for line in lines:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def _spoken(data: Any, field: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _spoken(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _spoken(value, field)
    elif isinstance(data, str) and field in _SPOKEN:
        yield field, data


def way_through(route: str, stream: bool) -> str:
    """The name of one way through the proxy."""
    return f"{route}, {'streamed' if stream else 'plain'}"
