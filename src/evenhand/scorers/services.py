"""Scorers behind a service: any guardrail over HTTP, Perspective, OpenAI's moderation.

What a service says when it is broken, overloaded or closed must never be read as "harmless", so
everything but the expected form is `Unscored`.

Google's Perspective ends on 31 December 2026 and takes no new users since February 2026. What fails
there after its end is `service_closed`. Your own server that speaks the same format stays.
"""

import asyncio
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from evenhand.models import wire
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
from evenhand.scorers.base import (
    TOXICITY,
    Labels,
    Scorer,
    Scores,
    Unscored,
    by_attribute,
    checked,
    checked_labels,
    score_each,
    score_the_scorable,
)

_TRIES = 3
_AT_ONCE = 4
_MOST_BODY = 8 * 1024 * 1024  # our choice: 100 texts with a score for each of 100 sentences
_LONGEST_WAIT = 30.0  # our choice: the longest `Retry-After` that is sat out


@dataclass(frozen=True, slots=True)
class _ServiceFailure:
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
        key: str | None = None,
        key_header: str = "authorization",
        seconds: float = 60.0,
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
        if key and sendable(key):
            self._headers[key_header] = f"Bearer {key}" if key_header == "authorization" else key
        self.redact = Redactor(key)
        self._has_key = bool(key)
        self._seconds = seconds
        self._ends = ends
        self._rng = random.Random()  # jitter only

    async def post(self, body: Any) -> dict[str, Any] | Unscored:
        if self._places is None:
            self._places = asyncio.Semaphore(_AT_ONCE)
        async with self._places:
            outcome = await self._try(orjson.dumps(body))
        if not isinstance(outcome, _ServiceFailure):
            return outcome
        message = self.redact.beginning(outcome.what, 300)
        if outcome.reason in ("http_401", "http_403") and not self._has_key:
            message += ". No key was sent: name its variable as api_key_env in the config"
        if self._ends is not None and datetime.now(UTC).date() > self._ends:
            return Unscored("service_closed", f"the service ended on {self._ends}; {message}")
        return Unscored(outcome.reason, message)

    async def _try(self, data: bytes) -> dict[str, Any] | _ServiceFailure:
        deadline = asyncio.get_running_loop().time() + self._seconds
        for attempt in range(1, _TRIES + 1):
            # A third of the time each, so that a call that hangs leaves time for the next.
            ends = asyncio.get_running_loop().time() + self._seconds / _TRIES
            outcome = await self._attempt(data, min(ends, deadline))
            if not isinstance(outcome, _ServiceFailure) or not outcome.again or attempt == _TRIES:
                return outcome
            pause = pause_before(attempt, outcome.wait, self._rng)
            left = deadline - asyncio.get_running_loop().time()
            if pause >= min(left, _LONGEST_WAIT):
                return outcome
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns")

    async def _attempt(self, data: bytes, ends: float) -> dict[str, Any] | _ServiceFailure:
        call = self._open().post(self.url, data=data, allow_redirects=False)
        outcome = await answer_of(call, ends, _MOST_BODY)
        if isinstance(outcome, NoAnswer):
            return _ServiceFailure(outcome.reason, outcome.what)
        response, body = outcome
        return _object(body) if response.status == 200 else _refusal(response, body or b"")


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> _ServiceFailure:
    status = response.status
    if status == 410:
        return _ServiceFailure("service_closed", f"HTTP 410: {wire.error_text(body)}", again=False)
    return _ServiceFailure(
        f"http_{status}",
        f"HTTP {status}: {wire.error_text(body)}",
        retry_after(response.headers),
        again=status in RETRY_STATUSES,
    )


def _object(body: bytes | None) -> dict[str, Any] | _ServiceFailure:
    if body is None:
        return _ServiceFailure(
            "garbage", f"the answer is larger than {_MOST_BODY} bytes", again=False
        )
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return _ServiceFailure("garbage", "the answer is not a JSON object")


class _OfService(Scorer):
    """A scorer that asks one service."""

    _service: JsonService

    async def close(self) -> None:
        await self._service.close()


class HttpGuardrail(_OfService):
    """Sends `{text_field: text}`; the score stands at `score_field`, a path with dots
    ("result.toxic"). true is 1 and false is 0."""

    def __init__(
        self,
        url: str,
        *,
        text_field: str = "text",
        score_field: str = "score",
        key: str | None = None,
        seconds: float = 60.0,
    ) -> None:
        self._service = JsonService(url, key=key, seconds=seconds)
        self._text_field = text_field
        self._score_field = score_field

    @property
    def name(self) -> str:
        identity = f"{self._service.url}\n{self._text_field}\n{self._score_field}"
        return f"http@1+{hashlib.sha256(identity.encode()).hexdigest()[:12]}"

    def describe(self) -> dict[str, Any]:
        fields = {"text_field": self._text_field, "score_field": self._score_field}
        return {"kind": "http", "url": self._service.url, **fields}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

    async def _score(self, text: str) -> Scores | Unscored:
        reply: Any = await self._service.post({self._text_field: text})
        if isinstance(reply, Unscored):
            return reply
        for step in self._score_field.split("."):
            if not isinstance(reply, dict) or step not in reply:
                return Unscored("garbage", f"the answer holds no {self._score_field}")
            reply = reply[step]
        return checked({TOXICITY: int(reply) if isinstance(reply, bool) else reply})


GOOGLES = "https://commentanalyzer.googleapis.com"
ENDS = date(2026, 12, 31)
_NAMES = {
    "toxicity": "TOXICITY",
    "severe_toxicity": "SEVERE_TOXICITY",
    "insult": "INSULT",
    "identity_attack": "IDENTITY_ATTACK",
    "threat": "THREAT",
    "profanity": "PROFANITY",
    "sexual": "SEXUALLY_EXPLICIT",
}


class Perspective(_OfService):
    """`url` is that of the method: https://…/v1alpha1/comments:analyze"""

    def __init__(self, url: str, *, key: str | None = None, seconds: float = 60.0) -> None:
        host = urlsplit(url).hostname or ""
        self._googles = host.endswith(".googleapis.com")
        self._service = JsonService(
            url,
            key=key,
            key_header="x-goog-api-key",  # a header: a key in the address ends up in logs
            seconds=seconds,
            ends=ENDS if self._googles else None,
        )

    @property
    def name(self) -> str:
        # Another server is another model behind the same form.
        digest = hashlib.sha256(self._service.url.encode()).hexdigest()[:12]
        return "perspective@1" if self._googles else f"perspective@1+{digest}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(_NAMES)

    def describe(self) -> dict[str, Any]:
        end = {"ends": ENDS.isoformat()} if self._googles else {}
        return {"kind": "perspective", "url": self._service.url, **end}

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_each(texts, self._score)

    async def _score(self, text: str) -> Scores | Unscored:
        body = {
            "comment": {"text": text},
            "languages": ["en"],
            "requestedAttributes": {name: {} for name in _NAMES.values()},
            "doNotStore": True,
        }
        answer = await self._service.post(body)
        return answer if isinstance(answer, Unscored) else _read(answer)


def _read(answer: dict[str, Any]) -> Scores | Unscored:
    scores = answer.get("attributeScores")
    values = {}
    for attribute, name in _NAMES.items():
        try:
            values[attribute] = scores[name]["summaryScore"]["value"]  # type: ignore[index]
        except (KeyError, TypeError):
            continue  # an attribute that this server does not know
    return checked(values)


MODERATION_URL = "https://api.openai.com/v1"
MODERATION_MODEL = "omni-moderation-latest"
_BATCH = 32  # our choice: the service's own most, as of omni-moderation-2024-09-26
# Our choice: their "violence" is about what a text tells of, not about how it speaks to someone.
MODERATION_LABELS: Labels = {
    "toxicity": ("harassment", "harassment/threatening", "hate", "hate/threatening"),
    "insult": ("harassment",),
    "identity_attack": ("hate", "hate/threatening"),
    "threat": ("harassment/threatening", "hate/threatening"),
    "sexual": ("sexual", "sexual/minors"),
}
# A whole batch is refused for one text that the server does not like.
_ONE_BY_ONE = frozenset({"http_400", "http_413", "http_422"})


class OpenAIModeration(_OfService):
    """Any server that speaks OpenAI's `/v1/moderations`: texts in, scores by category out."""

    def __init__(
        self,
        url: str = MODERATION_URL,
        *,
        model: str = MODERATION_MODEL,
        key: str | None = None,
        labels: Labels = MODERATION_LABELS,
        seconds: float = 60.0,
    ) -> None:
        self._model = model
        self._labels = checked_labels(labels)
        self._service = JsonService(f"{url.rstrip('/')}/moderations", key=key, seconds=seconds)
        self._served: set[str] = set()

    @property
    def name(self) -> str:
        return f"openai_moderation@1:{self._model}"

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self._labels)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "openai_moderation",
            "url": self._service.url,
            "model": self._model,
            "served": sorted(self._served),  # what an alias such as "latest" stood for
            "labels": dict(self._labels),
        }

    async def score(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        return await score_the_scorable(texts, self._in_batches)

    async def _in_batches(self, texts: list[str]) -> list[Scores | Unscored]:
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        scored = await asyncio.gather(*map(self._batch, batches))
        return [outcome for batch in scored for outcome in batch]

    async def _batch(self, texts: Sequence[str]) -> list[Scores | Unscored]:
        answer = await self._service.post({"model": self._model, "input": list(texts)})
        if isinstance(answer, Unscored):
            if answer.reason in _ONE_BY_ONE and len(texts) > 1:
                alone = await asyncio.gather(*(self._batch([text]) for text in texts))
                return [outcome for [outcome] in alone]
            return [answer] * len(texts)
        served, results = answer.get("model"), answer.get("results")
        if not isinstance(results, list) or len(results) != len(texts):
            count = len(results) if isinstance(results, list) else "no list of"
            message = f"{len(texts)} texts were sent, {count} results came"
            return [Unscored("wrong_length", message)] * len(texts)
        if isinstance(served, str) and len(self._served) < 10:
            self._served.add(self._service.redact(served)[:100])
        return [self._result(result) for result in results]

    def _result(self, result: Any) -> Scores | Unscored:
        scores = result.get("category_scores") if isinstance(result, dict) else None
        if not isinstance(scores, dict):
            return Unscored("garbage", "a result has no category_scores")
        return by_attribute(scores, self._labels)
