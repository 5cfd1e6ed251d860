"""Labelled texts, recorded scores and Unicode tricks, to audit toxicity scorers with."""

from evenhand.benchmarks.toxicity_sets.draw import drawn, fitting, held_out
from evenhand.benchmarks.toxicity_sets.sets import ToxicitySets, card

__all__ = ["ToxicitySets", "card", "drawn", "fitting", "held_out"]
