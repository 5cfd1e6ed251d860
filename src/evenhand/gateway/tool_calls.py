"""Tool calls as the screen reads them: names as words, and of arguments what is text."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.scorers.passages import SHORTEST

# Where a word ends within a name: get_weather, getWeather, HTTPServer.
_JOINT = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def name_text(name: str) -> str:
    """
    >>> name_text("getStock_price")
    'get Stock price'
    """
    return " ".join(filter(None, _JOINT.split(name))) or name


def declared_names(sent: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that a client offers in its request, on any route."""
    lists = (sent.get(key) for key in ("tools", "functions"))
    tools = (tool for items in lists if isinstance(items, list) for tool in items)
    places = (
        definition
        for tool in tools
        if isinstance(tool, dict)
        for definition in (tool, tool.get("function"), tool.get("custom"))
    )
    names = (definition.get("name") for definition in places if isinstance(definition, dict))
    return frozenset(name for name in names if isinstance(name, str))


def argument_text(arguments: str) -> str:
    """The strings among arguments that are text, one a line. What is no JSON is text as a whole.

    A string of fewer than `SHORTEST` words is a label as a rule: a name, a code, a key word.

    >>> argument_text('{"id": 42, "to": ["Ann"], "say": {"subject": "See you at noon?"}}')
    'See you at noon?'
    """
    try:
        read = json.loads(arguments, object_pairs_hook=_values)  # of two equal keys both count
    except (ValueError, RecursionError):
        return arguments
    return "\n".join(string for string in _strings(read) if len(string.split()) >= SHORTEST)


def _values(pairs: list[tuple[str, Any]]) -> list[Any]:
    return [value for _, value in pairs]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
