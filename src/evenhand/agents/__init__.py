"""Agents are roles as declarations; a conversation asks them, records and pays."""

from evenhand.agents.agent import (
    Agent,
    Choice,
    Chosen,
    FreeText,
    Kind,
    NextToken,
    ReasonedChoice,
    Reply,
    choice_of,
    words,
)
from evenhand.agents.conversation import Ask, Cast, Conversation, Limits, side_by_side

__all__ = [
    "Agent",
    "Ask",
    "Cast",
    "Choice",
    "Chosen",
    "Conversation",
    "FreeText",
    "Kind",
    "Limits",
    "NextToken",
    "ReasonedChoice",
    "Reply",
    "choice_of",
    "side_by_side",
    "words",
]
