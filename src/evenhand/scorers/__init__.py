"""Text → score without a conversation. Versioned, and a failure is an error, never a zero."""

from evenhand.scorers.base import Scorer, ScorerModel, ToxicityScore
from evenhand.scorers.wordlist import WordList

__all__ = ["Scorer", "ScorerModel", "ToxicityScore", "WordList"]
