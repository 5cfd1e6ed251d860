"""Judges under test, after MALIBU (Mirza et al. 2025): the same text under different labels of its
author. Only what a label does to a judgement is measured; text and slot are balanced out."""

from evenhand.instruments.judge.data import JudgeLabels, LabelFamily, MalibuData, Scenario, card
from evenhand.instruments.judge.design import TEN, JudgeDesign, Judgement, MalibuSource, judgements

__all__ = [
    "TEN",
    "JudgeDesign",
    "JudgeLabels",
    "Judgement",
    "LabelFamily",
    "MalibuData",
    "MalibuSource",
    "Scenario",
    "card",
    "judgements",
]
