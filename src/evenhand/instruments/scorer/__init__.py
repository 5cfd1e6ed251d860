"""Labelled texts, recorded scores and Unicode tricks, to audit toxicity scorers with."""

from evenhand.instruments.scorer.draw import drawn, held_out
from evenhand.instruments.scorer.sets import ToxicitySets, card

__all__ = ["ToxicitySets", "card", "drawn", "held_out"]
