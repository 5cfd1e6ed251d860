"""Frozen types that every room uses, errors, parts by name, and the environment.

A name is imported when it is first used, so that a command which needs none of them starts fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.core.items import (
        OUTCOMES,
        Answer,
        Draft,
        FollowUp,
        Item,
        Message,
        Outcome,
        ScoreLimit,
        message_of,
    )
    from evenhand.core.results import Answered, Event, Failed, Result, Turn, Usage, messages_in

__all__ = [
    "OUTCOMES",
    "Answer",
    "Answered",
    "Draft",
    "Event",
    "Failed",
    "FollowUp",
    "Item",
    "Message",
    "Outcome",
    "Result",
    "ScoreLimit",
    "Turn",
    "Usage",
    "message_of",
    "messages_in",
]

_NAMES = {
    "items": (
        "Answer",
        "Draft",
        "FollowUp",
        "Item",
        "Message",
        "OUTCOMES",
        "Outcome",
        "ScoreLimit",
        "message_of",
    ),
    "results": (
        "Answered",
        "Event",
        "Failed",
        "Result",
        "Turn",
        "Usage",
        "messages_in",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import one of the types at its first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
