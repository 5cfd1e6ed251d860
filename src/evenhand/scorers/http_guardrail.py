"""Any guardrail that takes a text as JSON and answers with a number or a yes or no."""

import hashlib
from collections.abc import Sequence
from typing import Any

from evenhand.scorers.base import TOXICITY, Scores, Unscored, checked, score_each
from evenhand.scorers.service import JsonService


class HttpGuardrail:
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

    @property
    def attributes(self) -> tuple[str, ...]:
        return (TOXICITY,)

    def describe(self) -> dict[str, Any]:
        fields = {"text_field": self._text_field, "score_field": self._score_field}
        return {"kind": "http", "url": self._service.url, **fields}

    async def close(self) -> None:
        await self._service.close()

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
