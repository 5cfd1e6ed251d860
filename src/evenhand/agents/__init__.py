"""Agents are roles as declarations; a conversation asks them, records and pays."""

from evenhand.agents.agent import (
    Agent,
    Choice,
    Chosen,
    FreeText,
    Kind,
    ReasonedChoice,
    Reply,
    choice_of,
    words,
)
from evenhand.agents.cast import Cast
from evenhand.agents.conversation import Ask, Conversation, Limits, side_by_side
from evenhand.agents.next_token import NextToken, OnScale, Read, YesNo, one_token

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
    "OnScale",
    "Read",
    "ReasonedChoice",
    "Reply",
    "YesNo",
    "choice_of",
    "one_token",
    "side_by_side",
    "words",
]
