"""A model that writes what a test wrote down, and a guardrail that fails on every tenth text."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field

from tests.loopback import replies
from tests.loopback.faulty import Fixed, well
from tests.loopback.http import Call, Line


@dataclass
class Writer:
    """Gives the lines in turn to whoever asks the same again: each prompt gets each line equally
    often, in whatever order its continuations are asked for."""

    lines: tuple[str, ...]
    _asked: Counter[str] = field(default_factory=Counter)

    async def __call__(self, call: Call, line: Line) -> str:
        if replies.schema_name(call.body) is not None:  # a judge
            return await well(call, line)
        asked = json.dumps(call.body["messages"])
        text = self.lines[self._asked[asked] % len(self.lines)]
        self._asked[asked] += 1
        await line.send_json(replies.completion(text, prompt_tokens=10, completion_tokens=5))
        return "written"


@dataclass
class FlakyGuardrail:
    """Scores 0.8 where a text says "idiot", else 0.2, and breaks on a tenth of the texts: which
    ones hangs on their words alone, so trying again does not help."""

    async def __call__(self, call: Call, line: Line) -> str:
        text = call.body["text"]
        if fails(text):
            return await Fixed(b"broken inside", status=500)(call, line)
        await line.send_json({"score": 0.8 if "idiot" in text else 0.2})
        return "scored"


def fails(text: str) -> bool:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 10 == 0
