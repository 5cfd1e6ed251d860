"""HTTP calls to a search engine: few tries, bounded bodies, a JSON object or a failure.

What an engine says when it is broken, overloaded or suspicious (an error page, a captcha, an empty
body) must never be read as "nothing found", so everything but the expected form is `SearchFailed`.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from evenhand.core.errors import SearchFailed
from evenhand.models.http_client import (
    RETRY_STATUSES,
    NoAnswer,
    OwnSession,
    answer_of,
    pause_before,
    plain_url,
    retry_after,
)
from evenhand.models.keys import Redactor, sendable

_TRIES = 3
_TRY_SECONDS = 10.0
_AT_ONCE = 4  # our choice: public engines block clients that ask more at a time
_MOST_BODY = 2 * 1024 * 1024
AGENT = "evenhand"


@dataclass(frozen=True, slots=True)
class _SearchFailure:
    what: str
    wait: float | None = None


class JsonApi(OwnSession):
    """An engine's address. Redirects are not followed: another host would get the query."""

    def __init__(self, name: str, url: str, *, key_header: str = "", key: str = "") -> None:
        self.url = plain_url(
            url,
            no_address="[search] url: write it like https://search.example/search",
            tells_too_much="[search] url: it holds a user, a password or a query; leave them out",
        )
        self._name = name
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "identity",  # a megabyte can unpack to a gigabyte
            "user-agent": AGENT,
        }
        if sendable(key):
            self._headers[key_header] = key
        self.redact = Redactor(key)
        self._rng = random.Random()  # jitter only

    async def get(self, parameters: Mapping[str, str], deadline: float) -> dict[str, Any]:
        """The JSON object that the engine answers with, or `SearchFailed` in words."""
        if self._places is None:
            self._places = asyncio.Semaphore(_AT_ONCE)
        async with self._places:
            return await self._try(parameters, deadline)

    async def _try(self, parameters: Mapping[str, str], deadline: float) -> dict[str, Any]:
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._attempt(parameters, deadline)
            if not isinstance(outcome, _SearchFailure):
                return outcome
            pause = pause_before(attempt, outcome.wait, self._rng)
            left = deadline - asyncio.get_running_loop().time()
            if attempt == _TRIES or pause >= left:
                raise self.failed(f"{attempt} tries failed; last: {outcome.what}", attempt)
            await asyncio.sleep(pause)

    def failed(self, what: str, attempts: int = 1) -> SearchFailed:
        return SearchFailed(f"{self._name}: {self.redact(what)[:300]}", attempts=attempts)

    async def _attempt(
        self, parameters: Mapping[str, str], deadline: float
    ) -> dict[str, Any] | _SearchFailure:
        ends = min(deadline, asyncio.get_running_loop().time() + _TRY_SECONDS)
        call = self._open().get(self.url, params=parameters, allow_redirects=False)
        outcome = await answer_of(call, ends, _MOST_BODY)
        if isinstance(outcome, NoAnswer):
            return _SearchFailure(outcome.what)
        response, body = outcome
        if body is None:
            return _SearchFailure(f"its answer is larger than {_MOST_BODY} bytes")
        if response.status in RETRY_STATUSES:
            return _SearchFailure(f"HTTP {response.status}", retry_after(response.headers))
        if response.status != 200:
            self._refused(response.status)
        return self._object(body)

    def _refused(self, status: int) -> NoReturn:
        advice = {
            401: ". The key was not accepted",
            403: ". The key, or JSON answers as such, are not allowed there",
            404: ". Is the address right?",
        }.get(status, "")
        if 300 <= status < 400:
            advice = " (a redirect). Give the address that it leads to"
        raise self.failed(f"HTTP {status}{advice}")

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if isinstance(answer, dict):
            return answer
        kind = "a web page" if body.lstrip()[:1] == b"<" else "something that is not a JSON object"
        raise self.failed(f"answered with {kind}: a captcha, an error page or another service")


def words(value: Any) -> str:
    """A field of an engine's answer that should be a string."""
    return value if isinstance(value, str) else ""


def entries(value: Any) -> list[dict[str, Any]] | None:
    """A field that should be a list of objects; None if it is not."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return None
    return value
