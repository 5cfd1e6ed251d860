"""Whether a text satisfies the JSON schema that its client gave.

Schema and text are strangers'. A schema whose cost is not bounded by its looks is refused. Every
other one is checked against the text in a separate process, which is killed at a deadline: no
schema blocks the event loop.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from evenhand.gateway.schema_check import FITS

_PROGRAM = Path(__file__).with_name("schema_check.py")
_SECONDS = 5.0  # our choice, by the clock: a loaded machine starts a process slowly
_WAIT_SECONDS = 10.0  # our choice: with the time in the queue
_AT_ONCE = 4  # our choice: processes side by side
_MOST_REFERENCES = 40  # our choice: a reference can double the work of the next
_MOST_BYTES = 256 * 1024  # our choice: of a schema
# They resolve by what was read on the way to them, or give a name to a place that is not its path.
_UNBOUNDED = frozenset({
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor", "$id",
})  # fmt: skip

_PROCESSES = ThreadPoolExecutor(_AT_ONCE, "schema")


async def satisfies(text: str, schema: Mapping[str, Any]) -> bool:
    """Say whether a text is JSON of that schema. What cannot be told in time is a no."""
    if not bounded(schema):
        return False
    try:
        question = orjson.dumps({"text": text, "schema": dict(schema)})
    except (TypeError, orjson.JSONEncodeError):  # half of a surrogate pair, or a key that is none
        return False
    running = asyncio.get_running_loop().run_in_executor(_PROCESSES, _fits, question)
    try:
        return await asyncio.wait_for(running, _WAIT_SECONDS)
    except TimeoutError:
        return False


def bounded(schema: Mapping[str, Any]) -> bool:
    """Say whether the looks of a schema bound what it costs.

    Its references are few and lead to paths of its own, nothing resolves by what was read before,
    and no part of it claims another address.
    """
    try:
        if len(orjson.dumps(dict(schema))) > _MOST_BYTES:
            return False
    except (TypeError, orjson.JSONEncodeError):
        return False
    root = {name: part for name, part in schema.items() if name != "$id"}
    objects = list(_objects(root))
    references = [str(node["$ref"]) for node in objects if "$ref" in node]
    return (
        len(references) <= _MOST_REFERENCES
        and all(reference.startswith("#") for reference in references)
        and not any(_UNBOUNDED & node.keys() for node in objects)
    )


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects of a JSON value, without recursion: it may be deep."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            yield part
            parts += part.values()
        elif isinstance(part, list):
            parts += part


def _fits(question: bytes) -> bool:
    """Ask a process of its own, and kill it at the deadline."""
    try:
        # -P: next to the program are modules whose names others have too.
        done = subprocess.run(  # noqa: S603 a program of our own
            [sys.executable, "-P", str(_PROGRAM)],
            input=question,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return False
    return done.returncode == FITS
