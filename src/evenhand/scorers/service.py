"""HTTP calls to a scoring service: few tries, bounded bodies, a JSON object or a reason.

What a service says when it is broken, overloaded or closed must never be read as "harmless", so
everything but the expected form is `Unscored`.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import aiohttp
import orjson

from evenhand.models import wire
from evenhand.models.http_client import OwnSession, plain_url, read_capped
from evenhand.models.keys import Redactor, sendable
from evenhand.models.retry import RETRY_STATUSES, pause_before, retry_after
from evenhand.scorers.base import Unscored

_TRIES = 3
_MOST_BODY = 8 * 1024 * 1024  # our choice: 100 texts with a score for each of 100 sentences
_LONGEST_WAIT = 30.0  # our choice: the longest `Retry-After` that is sat out


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    what: str
    wait: float | None = None
    again: bool = True


class JsonService(OwnSession):
    """An address that takes JSON. Redirects are not followed: another host would get the texts.

    `seconds` bounds a call with all its tries. Past the day `ends`, whatever goes wrong is put
    down to the service's end.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        key_header: str = "authorization",
        seconds: float = 60.0,
        at_once: int = 4,
        ends: date | None = None,
    ) -> None:
        self.url = plain_url(
            url,
            no_address="a scorer's url should look like https://scores.example/v1",
            tells_too_much="a scorer's url holds a user, a password or a query; leave them out "
            "and name the key's environment variable in api_key_env",
        ).rstrip("/")
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        self._headers["accept-encoding"] = "identity"  # a megabyte can unpack to a gigabyte
        self._headers |= dict(headers or {})
        if key and sendable(key):
            self._headers[key_header] = f"Bearer {key}" if key_header == "authorization" else key
        self.redact = Redactor(key)
        self._has_key = bool(key)
        self._seconds = seconds
        self._at_once = at_once
        self._ends = ends
        self._rng = random.Random()  # jitter only

    async def post(self, body: Any) -> dict[str, Any] | Unscored:
        if self._places is None:
            self._places = asyncio.Semaphore(self._at_once)
        async with self._places:
            outcome = await self._try(orjson.dumps(body))
        if not isinstance(outcome, _Failure):
            return outcome
        message = self.redact.beginning(outcome.what, 300)
        if outcome.reason in ("http_401", "http_403") and not self._has_key:
            message += ". No key was sent: name its variable as api_key_env in the config"
        if self._ends is not None and datetime.now(UTC).date() > self._ends:
            return Unscored("service_closed", f"the service ended on {self._ends}; {message}")
        return Unscored(outcome.reason, message)

    async def _try(self, data: bytes) -> dict[str, Any] | _Failure:
        deadline = asyncio.get_running_loop().time() + self._seconds
        for attempt in range(1, _TRIES + 1):
            # A third of the time each, so that a call that hangs leaves time for the next.
            ends = asyncio.get_running_loop().time() + self._seconds / _TRIES
            outcome = await self._attempt(data, min(ends, deadline))
            if not isinstance(outcome, _Failure) or not outcome.again or attempt == _TRIES:
                return outcome
            pause = pause_before(attempt, outcome.wait, self._rng)
            left = deadline - asyncio.get_running_loop().time()
            if pause >= min(left, _LONGEST_WAIT):
                return outcome
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns")

    async def _attempt(self, data: bytes, ends: float) -> dict[str, Any] | _Failure:
        try:
            async with (
                asyncio.timeout_at(ends),
                self._open().post(self.url, data=data, allow_redirects=False) as response,
            ):
                body = await read_capped(response, _MOST_BODY)
        except aiohttp.ClientError as error:  # before TimeoutError: a connect time-out is both
            return _Failure("unreachable", f"{type(error).__name__}: {error}")
        except TimeoutError:
            return _Failure("timeout", "no whole answer in time")
        except OSError as error:
            return _Failure("unreachable", f"{type(error).__name__}: {error}")
        if response.status != 200:
            return _refusal(response, body or b"")
        return _object(body)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> _Failure:
    status = response.status
    if status == 410:
        return _Failure("service_closed", f"HTTP 410: {wire.error_text(body)}", again=False)
    return _Failure(
        f"http_{status}",
        f"HTTP {status}: {wire.error_text(body)}",
        retry_after(response.headers),
        again=status in RETRY_STATUSES,
    )


def _object(body: bytes | None) -> dict[str, Any] | _Failure:
    if body is None:
        return _Failure("garbage", f"the answer is larger than {_MOST_BODY} bytes", again=False)
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return _Failure("garbage", "the answer is not a JSON object")
