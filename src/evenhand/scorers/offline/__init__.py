"""A small toxicity model that ships with the package; see card.md for where not to trust it."""

from evenhand.scorers.offline.scorer import Missing, OfflineScorer, Scores

__all__ = ["Missing", "OfflineScorer", "Scores"]
