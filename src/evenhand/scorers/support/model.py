"""The judge of support as a member of a cast, so that its verdicts are recorded and replayed."""

import asyncio
import time
from typing import Any

import orjson

from evenhand.domain import Usage
from evenhand.errors import ScorerFailed
from evenhand.models.base import ModelReply, ModelRequest, Sample
from evenhand.scorers.support.features import Claim
from evenhand.scorers.support.judge import SupportJudge

ROLE = "support"
_LONGEST = 100_000  # signs of what it is given; our choice: a longer context is no question's


class SupportModel:
    """Plays the role `support`. It is given a context, a question and options as JSON, and gives
    one number for each option."""

    def __init__(self, judge: SupportJudge | None = None) -> None:
        self._judge = judge or SupportJudge()

    @property
    def name(self) -> str:
        return self._judge.name

    def describe(self) -> dict[str, Any]:
        return {"kind": "scorer", "model": self.name, "scorer": {"kind": ROLE}}

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        started, clock = time.time_ns() // 1000, asyncio.get_running_loop().time()
        # The first thing said is the claim; what follows it is talk about an unreadable reply.
        content = next(message.content for message in request.messages if message.role == "user")
        if len(content) > _LONGEST:
            raise ScorerFailed(f"{self.name}: the context is longer than {_LONGEST:,} signs")
        claim = orjson.loads(content)
        options = claim["options"]
        claims = [
            Claim(claim["context"], claim["question"], option, (*options[:i], *options[i + 1 :]))
            for i, option in enumerate(options)
        ]
        reply = {"support": self._judge.of(claims)}
        return ModelReply(
            samples=(Sample(orjson.dumps(reply).decode()),),
            usage=Usage(0, 0),
            served_by=self.name,
            started_us=started,
            seconds=asyncio.get_running_loop().time() - clock,
        )
