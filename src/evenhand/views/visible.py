"""Strip invisible characters and those that control a terminal from text from outside."""

import json
import re

# Controls (C0 without tab and line break, DEL, C1), those that turn the direction of reading, those
# without width, fillers that look like nothing, selectors of a variant, in which whole texts have
# been hidden, tags, halves of a pair, which no terminal can be sent, and what XML does not know.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Every sign that can be seen stays."""
    return _UNSEEN.sub("", text)


def hidden(text: str) -> int:
    """Count the characters that `visible` strips."""
    return len(_UNSEEN.findall(text))


def escaped_json(written: str) -> str:
    """Return the same JSON with invisible characters as escapes."""
    return _UNSEEN.sub(lambda sign: json.dumps(sign[0])[1:-1], written)
