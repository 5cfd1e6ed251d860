"""Roles as declarations, and the conversation that asks, records and pays."""

from evenhand.agents.agent import Agent, Choice, FreeText, Reply, choice_of
from evenhand.agents.conversation import Ask, Cast, Conversation, Limits, side_by_side

__all__ = [
    "Agent",
    "Ask",
    "Cast",
    "Choice",
    "Conversation",
    "FreeText",
    "Limits",
    "Reply",
    "choice_of",
    "side_by_side",
]
