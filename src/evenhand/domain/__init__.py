"""Frozen types that every room speaks in. No behaviour beyond construction."""

from evenhand.domain.items import Answer, Draft, Item
from evenhand.domain.outcomes import OUTCOMES, Bound, Outcome
from evenhand.domain.results import Answered, Event, Failed, Result
from evenhand.domain.turns import Message, Turn, Usage

__all__ = [
    "OUTCOMES",
    "Answer",
    "Answered",
    "Bound",
    "Draft",
    "Event",
    "Failed",
    "Item",
    "Message",
    "Outcome",
    "Result",
    "Turn",
    "Usage",
]
