"""How ill a text speaks of the person or the group that it is about; see card.md for where not to
trust it."""

from evenhand.scorers.regard.scorer import RegardScorer

__all__ = ["RegardScorer"]
