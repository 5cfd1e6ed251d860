"""How the gateway says no, in the shape that OpenAI's clients read."""

from dataclasses import dataclass, field

import orjson


@dataclass(eq=False)  # not frozen: raising writes the traceback into it
class Refused(Exception):
    """An answer that is an error. `message` is in our words: what was found is never quoted."""

    status: int
    code: str  # a short stable word: content_blocked, not_checked, overloaded, …
    message: str
    kind: str = "evenhand_error"
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Give the error as JSON."""
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return orjson.dumps({"error": error})


class MalformedReply(Exception):
    """The upstream sent what is not an answer of this wire. Nothing of it may go on."""
