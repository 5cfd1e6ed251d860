"""Labelled texts, recorded scores and Unicode tricks, to audit toxicity scorers with."""

from evenhand.instruments.scorer.draw import drawn, fitting, held_out
from evenhand.instruments.scorer.sets import ToxicitySets, card

__all__ = ["ToxicitySets", "card", "drawn", "fitting", "held_out"]
