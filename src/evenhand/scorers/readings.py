"""A text as it is, and as somebody reads it who undoes an encoding.

Hidden words cost whoever hides them nothing, and a client may decode them: percent-encoding, HTML
entities, `\\xNN` escapes, Unicode tag characters, which nobody sees, and base64.
"""

import base64
import binascii
import html
import re
from urllib.parse import unquote

_ROUNDS = 3  # our choice: what is encoded more often is not undone
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_HEX = re.compile(r"(?:\\x[0-9a-fA-F]{2})+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")  # shorter ones are words as a rule
_PRINTED = 0.95  # our choice: the least share of printable characters in what is text


def readings(text: str) -> tuple[str, ...]:
    """Give a text, and its decoded form where that is another.

    >>> readings("%59%6f%75 fool")
    ('%59%6f%75 fool', 'You fool')
    >>> readings("100% sure")
    ('100% sure',)
    """
    decoded = text
    for _ in range(_ROUNDS):
        before, decoded = decoded, _decoded(decoded)
        if decoded == before:
            break
    return (text,) if decoded == text else (text, decoded)


def _decoded(text: str) -> str:
    if not text.isascii():
        text = _TAGS.sub(lambda hit: " " + "".join(chr(ord(c) - 0xE0000) for c in hit[0]), text)
    if "%" in text:
        text = _PERCENT.sub(lambda hit: unquote(hit[0], errors="replace"), text)
    if "\\x" in text:
        text = _HEX.sub(_from_hex, text)
    if "&" in text:
        text = html.unescape(text)
    return _BASE64.sub(_from_base64, text)


def _from_hex(hit: re.Match[str]) -> str:
    return bytes.fromhex(hit[0].replace("\\x", "")).decode("utf-8", "replace")


def _from_base64(hit: re.Match[str]) -> str:
    """What it holds, if that is text; else what stands there. A path or an id is no text."""
    body = hit[0].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return hit[0]
    printed = sum(sign.isprintable() or sign.isspace() for sign in text)
    return text if text and printed >= _PRINTED * len(text) else hit[0]
