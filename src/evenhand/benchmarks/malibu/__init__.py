"""Judges under test, after MALIBU (Mirza et al. 2025): the same text under different labels of its
author. Only what a label does to a judgement is measured; text and slot are balanced out."""

from evenhand.benchmarks.malibu.data import MalibuData, Scenario, card
from evenhand.benchmarks.malibu.design import TEN, Design, Judgement, judgements
from evenhand.benchmarks.malibu.labels import Family, Labels
from evenhand.benchmarks.malibu.outcomes import outcomes
from evenhand.benchmarks.malibu.source import MalibuSource

__all__ = [
    "TEN",
    "Design",
    "Family",
    "Judgement",
    "Labels",
    "MalibuData",
    "MalibuSource",
    "Scenario",
    "card",
    "judgements",
    "outcomes",
]
