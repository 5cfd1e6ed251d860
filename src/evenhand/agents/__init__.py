"""Agents are roles as declarations; a conversation asks them, records and pays."""

from evenhand.agents.agent import (
    Agent,
    Choice,
    Digit,
    FreeText,
    Kind,
    NextToken,
    OnScale,
    OptionReply,
    Read,
    ReasonedChoice,
    Reply,
    YesNo,
    choice_of,
    one_token,
    words,
)
from evenhand.agents.cast import Cast
from evenhand.agents.conversation import Ask, Conversation, Limits, side_by_side

__all__ = [
    "Agent",
    "Ask",
    "Cast",
    "Choice",
    "Conversation",
    "Digit",
    "FreeText",
    "Kind",
    "Limits",
    "NextToken",
    "OnScale",
    "OptionReply",
    "Read",
    "ReasonedChoice",
    "Reply",
    "YesNo",
    "choice_of",
    "one_token",
    "side_by_side",
    "words",
]
