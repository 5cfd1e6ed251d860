"""Text → scores without a conversation. Versioned, and a failure is a reason, never a zero."""

from evenhand.scorers.base import (
    ATTRIBUTES,
    TOXICITY,
    Scorer,
    ScorerModel,
    Scores,
    Unscored,
    unscorable,
)
from evenhand.scorers.wordlist import WordList

__all__ = [
    "ATTRIBUTES",
    "TOXICITY",
    "Scorer",
    "ScorerModel",
    "Scores",
    "Unscored",
    "WordList",
    "unscorable",
]
