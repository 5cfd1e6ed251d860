"""What every wire needs for reading strictly: JSON that is read in one way only, and fields that
are known. What is not known is left out, and its name is kept."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from evenhand.gateway.wire import MalformedReply, Refused

MOST_TEXTS = 128  # our choice, as OpenAI's own bound of `n`
_MOST_NAMES = 64  # our choice: names of fields left out that are kept of one answer
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# Ids, fingerprints and names of models: one word. Our choices: nobody checks what they say, so they
# are short, and names of models, which hold paths, twice as long.
_TOKEN = re.compile(r"[A-Za-z0-9_./:@+=~|-]{1,64}")
_MODEL = re.compile(r"[A-Za-z0-9_./:@+=~|-]{1,128}")
_LAST_SECOND = 2**40  # our choice: of `created`, some 35,000 years from now
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
# The numbers of `usage`, of all wires.
_USAGE: Mapping[str, Any] = {
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), None),
    **dict.fromkeys(("input_tokens", "output_tokens"), None),
    **dict.fromkeys(("cache_creation_input_tokens", "cache_read_input_tokens"), None),
    "cache_creation": {"ephemeral_5m_input_tokens": None, "ephemeral_1h_input_tokens": None},
    "prompt_tokens_details": {"cached_tokens": None, "audio_tokens": None},
    "input_tokens_details": {"cached_tokens": None, "cache_write_tokens": None},
    "output_tokens_details": {"reasoning_tokens": None},
    "completion_tokens_details": {
        "reasoning_tokens": None,
        "audio_tokens": None,
        "accepted_prediction_tokens": None,
        "rejected_prediction_tokens": None,
    },
}


def refused(message: str, code: str = "not_supported") -> Refused:
    """Make the error for a request that we do not take."""
    return Refused(400, code, message, kind="invalid_request_error")


def request(body: bytes) -> dict[str, Any]:
    """Read a client's body: a JSON object, no key twice. Raises `Refused`."""
    try:
        read = orjson.loads(body)
        json.loads(body, object_pairs_hook=_once)
        orjson.dumps(read)  # what is nested too deep could be read, but not sent on
    except _DuplicateKey:
        raise refused("The body has a key twice in one object.", "bad_request") from None
    except (ValueError, TypeError, RecursionError):
        raise refused("The body is not JSON, or is nested too deep.", "bad_request") from None
    if not isinstance(read, dict):
        raise refused("The body is not a JSON object.", "bad_request")
    return read


class _DuplicateKey(Exception):
    """A key stands twice in one object, so that two readers may read two things."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _DuplicateKey


def field(raw: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    """Read a field of a client's request.

    Args:
        raw: The JSON object.
        name: The field's name.
        kind: The type that the value must have.
        default: The result if the field is absent or null.

    Returns:
        The value.

    Raises:
        Refused: If the value has another type.
    """
    value = raw.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise refused(f"`{name}` is not of the type that it should be.", "bad_request")
    return value


def answer(data: bytes) -> dict[str, Any]:
    """Read an upstream's body or event: a JSON object other than an error. Raises `MalformedReply`.

    Of a key that occurs twice the last counts: the output is written from what was read.
    """
    try:
        read = orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError):
        raise MalformedReply("what the upstream sent is not JSON") from None
    if not isinstance(read, dict):
        raise MalformedReply("what the upstream sent is not a JSON object")
    if read.get("error") is not None:
        raise MalformedReply("the upstream sent an error in the place of an answer")
    return read


def a(kind: type, value: Any, what: str) -> Any:
    """Check the type of a value of an upstream's answer.

    Args:
        kind: The type that the value must have.
        value: The value.
        what: Its name in the error.

    Returns:
        The value.

    Raises:
        MalformedReply: If the value has another type.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise MalformedReply(f"{what} is not of the type that it should be")
    return value


def leave(left_out: set[str], name: str) -> None:
    """Note a field that is not passed on. A name may itself be text: only plain ones are kept."""
    if len(left_out) < _MOST_NAMES:
        left_out.add(name if _PLAIN_NAME.fullmatch(name) else "(not a plain name)")


def only(
    raw: Mapping[str, Any], expected: Collection[str], left_out: set[str], where: str = ""
) -> None:
    """Note every unknown field that holds something.

    Args:
        raw: The JSON object.
        expected: The known fields.
        left_out: Receives the names of the unknown ones.
        where: A prefix for these names, such as the path of the object.
    """
    for name, value in raw.items():
        if name not in expected and value not in (None, "", [], {}):
            leave(left_out, where + name)


def token(value: Any) -> str | None:
    """Give an id or a name that is one word; None if it is anything else."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def head(raw: Mapping[str, Any], name: str) -> str | None:
    """Give a field of the head of an answer that is one word; None if it is anything else."""
    value = raw.get(name)
    if name != "model":
        return token(value)
    return value if isinstance(value, str) and _MODEL.fullmatch(value) else None


def moment(value: Any) -> int:
    """Give whole seconds since 1970; 0 if it is anything else."""
    seconds = number(value)
    return int(seconds) if seconds is not None and 0 <= seconds < _LAST_SECOND else 0


def number(value: Any) -> int | float | None:
    """Give a number; None if it is anything else."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def usage(raw: Any, left_out: set[str]) -> dict[str, Any] | None:
    """Give the known numbers of `usage`; None if there are none."""
    return _numbers(raw, _USAGE, left_out, "usage.")


def _numbers(
    raw: Any, fields: Mapping[str, Any], left_out: set[str], where: str
) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    numbers: dict[str, Any] = {}
    only(raw, fields, left_out, where)
    for name, below in fields.items():
        value = raw.get(name)
        converted = number(value) if below is None else _numbers(value, below, left_out, where)
        if converted is not None:
            numbers[name] = converted
    return numbers or None


def citation(raw: Any) -> dict[str, Any] | None:
    """Give a citation of a page in the fields that we know; None if it is anything else."""
    if not isinstance(raw, dict):
        return None
    texts = {name: raw.get(name) for name in ("url", "title")}
    places = {name: raw.get(name) for name in ("start_index", "end_index")}
    right = all(isinstance(text, str) for text in texts.values()) and all(
        type(position) is int and position >= 0 for position in places.values()
    )
    return {**texts, **places} if right else None


def readable(arguments: str) -> str:
    r"""Give JSON as a person will read it, `\u00e9` as a letter. Of two equal keys both stay."""
    return _ESCAPES.sub(_unescaped, arguments)


def _unescaped(match: re.Match[str]) -> str:
    units = bytes.fromhex(match[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
