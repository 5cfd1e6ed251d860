"""Text from outside, as it may be shown: without the signs that steer a terminal or hide words."""

import json
import re

# Controls (C0 without tab and line break, DEL, C1), those that turn the direction of reading, those
# without width, tags, halves of a pair, which no terminal can be sent, and what XML does not know.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Every sign that can be seen stays."""
    return _UNSEEN.sub("", text)


def escaped_json(written: str) -> str:
    """The same JSON, in which the signs that cannot be seen are escapes."""
    return _UNSEEN.sub(lambda sign: json.dumps(sign[0])[1:-1], written)
