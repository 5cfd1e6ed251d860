"""The placebo critic answers with a critique recorded for a different item (control condition
`critique=other`)."""

import asyncio
import hashlib
import time
from collections.abc import Iterable
from typing import Any

import orjson

from evenhand.domain import Usage
from evenhand.errors import UserError
from evenhand.models.base import ModelReply, ModelRequest, Sample


class BorrowedReplies:
    """A placebo critic gives each item a text that was recorded for another one.

    What it is asked is the id of the item that wants one. Which text it gets depends on that id and
    on how often the item has asked before, not on the order of the run or on a clock.
    """

    name = "borrowed"

    def __init__(self, recorded: Iterable[tuple[str, str]]) -> None:
        """Take ids of items, each with a text that was recorded for it."""
        # A rendered prompt has no blanks around it, so the ids are compared without them.
        self._said = tuple(sorted((item.strip(), text) for item, text in recorded))
        items = len({item for item, _ in self._said})
        if items < 2:
            raise UserError(
                f"there are texts of {items} items to borrow from; two or more are needed, so that "
                "none gets its own"
            )

    def describe(self) -> dict[str, Any]:
        """Describe the texts by their hash: two placebo critics with the same texts are the same,
        wherever these were recorded."""
        digest = hashlib.sha256(orjson.dumps(self._said)).hexdigest()
        return {
            "kind": "borrowed",
            "model": self.name,
            "texts": len(self._said),
            "sha256": digest,
        }

    async def close(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        started = time.time_ns() // 1000
        await asyncio.sleep(0)
        # The first thing said is the id; what follows it is talk about an unreadable reply.
        asking = next(message.content for message in request.messages if message.role == "user")
        return ModelReply(
            samples=(Sample(self.text_for(asking, request.occurrence)),),
            usage=Usage(0, 0),
            served_by=self.name,
            started_us=started,
        )

    def text_for(self, item: str, occurrence: int) -> str:
        digest = hashlib.sha256(f"{item}:{occurrence}".encode()).digest()
        index = int.from_bytes(digest[:8], "big") % len(self._said)
        while self._said[index][0] == item:  # ends: at least one other item is there
            index = (index + 1) % len(self._said)
        return self._said[index][1]
