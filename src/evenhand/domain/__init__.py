"""Frozen types that every room speaks in. No behaviour beyond construction."""

from evenhand.domain.items import OUTCOMES, Answer, Draft, Item, Outcome, ScoreLimit
from evenhand.domain.results import Answered, Event, Failed, Message, Result, Turn, Usage

__all__ = [
    "OUTCOMES",
    "Answer",
    "Answered",
    "Draft",
    "Event",
    "Failed",
    "Item",
    "Message",
    "Outcome",
    "Result",
    "ScoreLimit",
    "Turn",
    "Usage",
]
