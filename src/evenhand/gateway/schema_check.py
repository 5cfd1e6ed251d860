"""The process that holds one text against one JSON schema.

It reads a JSON object with `text` and `schema` from its standard input and ends with `FITS`,
`DOES_NOT_FIT` or `CANNOT_TELL`. `schemas.py` starts it by its path and kills it at a deadline. It
imports nothing of evenhand, so that it starts fast.
"""

import resource
import sys
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import orjson

FITS, DOES_NOT_FIT, CANNOT_TELL = 0, 10, 11
_MEMORY = 1 << 30  # our choice, in bytes of addresses: what a schema may take
_CPU_SECONDS = 1  # our choice: a schema needs milliseconds, and the start a tenth of a second


class BadSchema(Exception):
    """The schema is invalid, or needs what is not at hand."""


def _nothing_is_fetched(address: str) -> Any:
    raise BadSchema(address)


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Make a validator that fetches no reference and matches patterns in linear time.

    Raises:
        BadSchema: The schema is invalid, refers to another document, or has a pattern that only a
            backtracking engine can match.
    """
    try:
        return jsonschema_rs.validator_for(
            dict(schema),
            retriever=_nothing_is_fetched,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        raise BadSchema(str(error)[:200]) from None


def main() -> int:
    """Read one question from standard input and give the exit code that answers it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    try:
        request = orjson.loads(sys.stdin.buffer.read())
        fits = validator_of(request["schema"]).is_valid(orjson.loads(request["text"]))
    except (BadSchema, ValueError):
        return CANNOT_TELL
    return FITS if fits else DOES_NOT_FIT


if __name__ == "__main__":
    sys.exit(main())
