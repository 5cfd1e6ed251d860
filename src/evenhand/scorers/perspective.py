"""A Perspective-compatible endpoint (`comments:analyze`), at the user's own address.

Google's service ends on 31 December 2026 and takes no new users since February 2026. What fails
there after its end is `service_closed`. A server of one's own that speaks the same form stays.
"""

import hashlib
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from evenhand.scorers.base import Scores, Unscored, checked, score_each
from evenhand.scorers.service import JsonService

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


class Perspective:
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

    async def close(self) -> None:
        await self._service.close()

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
