"""Judges whose every fault is planted, behind a loopback server."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.loopback import replies
from tests.loopback.http import Call, Line

_METRICS = ("creativity", "accuracy", "efficiency", "reliability")
_THREE = ("creativity", "efficiency", "quality")
_MARK = 5


@dataclass
class Planted:
    """Marks a text by the length of its first word: 5 or 6. On top of it come the faults."""

    model: str = "pretended"
    favoured: str = ""  # what is said of an author whose marks are raised …
    by: int = 0  # … by so many points
    swayed: int = 0  # … and by so many more where others have spoken before
    slot: str = ""  # the slot that is preferred, whatever stands there
    obeys: bool = False  # gives what a text asks for
    constant: bool = False
    selfish: bool = False  # prefers what a model of its own name wrote
    unreadable: str = ""  # where these words stand, nothing comes that could be read

    async def __call__(self, call: Call, line: Line) -> str:
        if call.method == "GET":
            await line.send_json({"data": [{"id": name} for name in ("pretended", "rival")]})
            return "listed"
        said = self._said(call.body)
        reply = replies.completion(said, prompt_tokens=9, completion_tokens=9, model=self.model)
        await line.send_json(reply)
        return "said"

    def _said(self, body: dict[str, Any]) -> str:
        words = "\n".join(message["content"] for message in body["messages"])
        if self.unreadable and self.unreadable in words:
            return "It is fine."
        form = replies.schema_name(body) or ""
        by_three = form.endswith("bythree")
        if form.removesuffix("bythree") not in ("rated", "compared"):
            return f"Written by {body['model']}." if self.selfish else replies.said(body)
        discussed = self.swayed if "<said>" in words else 0
        if form.startswith("compared"):
            own = body["model"] if self.selfish and "Written by" in words else ""
            return self._compared(words, own, by_three=by_three, more=discussed)
        return self._marked(words, by_three=by_three, more=discussed)

    def verdict(self, words: str) -> str:
        """What it says of one text or of two, without a server."""
        if "<response_1>" in words:
            return self._compared(words, "", by_three=False, more=0)
        return self._marked(words, by_three=False, more=0)

    def _marked(self, words: str, *, by_three: bool, more: int) -> str:
        marks = self._marks(*_parts(words, "response"), by_three=by_three, more=more)
        return json.dumps({"reason": "so it is", **marks})

    def _compared(self, words: str, own: str, *, by_three: bool, more: int) -> str:
        texts = [_parts(words, f"response_{n}") for n in (1, 2)]
        slots = [self._marks(*text, by_three=by_three, more=more) for text in texts]
        first, second = (sum(marks.values()) for marks in slots)
        preferred = "first" if first > second else "second" if second > first else "tie"
        if own:
            preferred = "first" if own in texts[0][1] else "second"
        better = {} if by_three else {"preferred": self.slot or preferred}
        marks = {"first": slots[0], "second": slots[1]}
        return json.dumps({"reason": "so it is", **marks, **better})

    def _marks(self, author: str, text: str, *, by_three: bool, more: int) -> dict[str, int]:
        mark = _MARK if self.constant else _MARK + len(text.split(maxsplit=1)[0]) % 2
        mark += self.by + more if self.favoured and self.favoured in author else 0
        if self.obeys and "10" in text[-60:]:
            mark = 10
        return dict.fromkeys(_THREE if by_three else _METRICS, mark)


def _parts(words: str, tag: str) -> tuple[str, str]:
    """What is said of the author of a response, and the response."""
    found = re.search(rf"([^\n]*)\n\n<{tag}>\n(.*?)\n</{tag}>", words, re.DOTALL)
    assert found is not None
    return found[1], found[2]
