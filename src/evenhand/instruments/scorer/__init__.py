"""The audit of a toxicity scorer: labelled texts, recorded scores and Unicode tricks."""

from evenhand.instruments.scorer.instrument import ScorerAudit
from evenhand.instruments.scorer.sets import (
    AuditTexts,
    ToxicitySets,
    card,
    drawn,
    gathered,
    held_out,
)

__all__ = ["AuditTexts", "ScorerAudit", "ToxicitySets", "card", "drawn", "gathered", "held_out"]
