"""The audit of a toxicity scorer: labelled texts, recorded scores and Unicode tricks."""

from evenhand.instruments.scorer.draw import drawn, held_out
from evenhand.instruments.scorer.instrument import ScorerAudit
from evenhand.instruments.scorer.sets import ToxicitySets, card
from evenhand.instruments.scorer.source import AuditTexts, gathered

__all__ = ["AuditTexts", "ScorerAudit", "ToxicitySets", "card", "drawn", "gathered", "held_out"]
