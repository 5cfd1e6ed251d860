"""Frozen types that every room speaks in. No behaviour beyond construction."""

from evenhand.domain.items import OUTCOMES, Answer, Bound, Draft, Item, Outcome
from evenhand.domain.results import Answered, Event, Failed, Message, Result, Turn, Usage

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
