"""Text → scores without a conversation. Versioned, and a failure is a reason, never a zero."""

from evenhand.scorers.base import ATTRIBUTES, Scorer, ScorerModel, Scores, Unscored
from evenhand.scorers.wordlist import WordList

__all__ = ["ATTRIBUTES", "Scorer", "ScorerModel", "Scores", "Unscored", "WordList"]
