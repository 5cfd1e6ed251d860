"""Whether a text satisfies the JSON schema that its client gave.

Schema and text are strangers': references are never fetched, and patterns are matched in linear
time, so that no schema can hold the process up.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import orjson

# Our choice: references that refer twice to the next double the work at each; with 40 it stays
# below a tenth of a second.
_MOST_REFERENCES = 40


class BadSchema(Exception):
    """The schema is none, or needs what is not at hand."""


class _Fetched(Exception):
    pass


def _nothing_is_fetched(address: str) -> Any:
    raise _Fetched(address)


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Make a validator. Raises `BadSchema`."""
    if orjson.dumps(dict(schema)).count(b'"$ref"') > _MOST_REFERENCES:
        raise BadSchema("too many references")
    try:
        return jsonschema_rs.validator_for(
            dict(schema),
            retriever=_nothing_is_fetched,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        raise BadSchema(str(error)[:200]) from None


def satisfies(text: str, schema: Mapping[str, Any]) -> bool:
    """Say whether a text is JSON of that schema. What cannot be told is a no."""
    try:
        return bool(validator_of(schema).is_valid(orjson.loads(text)))
    except (BadSchema, orjson.JSONDecodeError, ValueError):
        return False
