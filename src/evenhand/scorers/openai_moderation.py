"""Any server that speaks OpenAI's `/v1/moderations`: a list of texts in, scores by category out."""

import asyncio
from collections.abc import Sequence
from typing import Any

from evenhand.scorers.base import Scores, Unscored, score_the_scorable
from evenhand.scorers.labels import Labels, by_attribute, checked_labels
from evenhand.scorers.service import JsonService

URL = "https://api.openai.com/v1"
MODEL = "omni-moderation-latest"
_BATCH = 32  # our choice: the service's own most, as of omni-moderation-2024-09-26
# Our choice: their "violence" is about what a text tells of, not about how it speaks to someone.
LABELS: Labels = {
    "toxicity": ("harassment", "harassment/threatening", "hate", "hate/threatening"),
    "insult": ("harassment",),
    "identity_attack": ("hate", "hate/threatening"),
    "threat": ("harassment/threatening", "hate/threatening"),
    "sexual": ("sexual", "sexual/minors"),
}
# A whole batch is refused for one text that the server does not like.
_ONE_BY_ONE = frozenset({"http_400", "http_413", "http_422"})


class OpenAIModeration:
    def __init__(
        self,
        url: str = URL,
        *,
        model: str = MODEL,
        key: str | None = None,
        labels: Labels = LABELS,
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

    async def close(self) -> None:
        await self._service.close()

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
