"""BBQ: 58,492 questions from 343 hand-written templates about nine social dimensions and two of
their intersections (Parrish et al. 2022)."""

from evenhand.instruments.bbq.answers import with_answers
from evenhand.instruments.bbq.data import BbqData, card
from evenhand.instruments.bbq.sample import PRESETS, BbqSampling, BbqSource, sample

__all__ = ["PRESETS", "BbqData", "BbqSampling", "BbqSource", "card", "sample", "with_answers"]
