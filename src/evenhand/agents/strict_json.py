"""This reader reads JSON once, strictly, or refuses it by name.

Python's own reader takes the last of two equal keys, reads NaN, and lets a million brackets or a
five-thousand-digit number through; so does strict pydantic for duplicate keys. A model's verdict
must not be read differently by two readers, so each of these is refused with a word of its own.
"""

import json
import re
from collections import Counter
from typing import Any, NoReturn

from evenhand.core.errors import UnreadableReply

MAX_CHARACTERS = 200_000
MAX_DEPTH = 32
_MAX_DIGITS = 300
_FENCE = re.compile(r"```(?:json)?[ \t]*\n")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# A string that never ends takes the rest of the text: looked at once, not once per quote in it.
_STRINGS_OR_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def parse(text: str) -> Any:
    """Read the JSON value that is the whole of `text` (one surrounding code fence is let
    through)."""
    if len(text) > MAX_CHARACTERS:
        raise UnreadableReply("too_large", f"{len(text)} characters, {MAX_CHARACTERS} are allowed")
    body = unfenced(text)
    if _SURROGATE.search(body):
        raise _lone_surrogate()
    if body.count("[") + body.count("{") > MAX_DEPTH and _depth(body) > MAX_DEPTH:
        raise UnreadableReply("too_deep", f"nested deeper than {MAX_DEPTH}")
    try:
        value = _DECODER.decode(body)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UnreadableReply("not_json", str(error)[:200]) from None
    if _ESCAPED_SURROGATE.search(body):
        _refuse_surrogates(value)
    return value


def unfenced(text: str) -> str:
    """Remove the one ``` fence that chat models like to put around JSON."""
    body = text.strip()
    opening = _FENCE.match(body)
    if opening and body.endswith("```", opening.end()):
        return body[opening.end() : -3]
    return text


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _STRINGS_OR_BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise UnreadableReply("duplicate_key", repr(twice[:100]))
    return result


def _refuse_surrogates(value: Any) -> None:
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise _lone_surrogate()
    elif isinstance(value, list):
        for entry in value:
            _refuse_surrogates(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            _refuse_surrogates(key)
            _refuse_surrogates(entry)


def _lone_surrogate() -> UnreadableReply:
    return UnreadableReply("not_text", "a lone surrogate")


def _constant(word: str) -> NoReturn:
    raise UnreadableReply("not_finite", word)


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise UnreadableReply("huge_number", f"{len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise UnreadableReply("not_finite", digits[:50])
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_float
)
