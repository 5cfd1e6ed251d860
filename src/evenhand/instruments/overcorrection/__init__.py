"""Over-correction: what a method makes of benign texts that name a group of people."""

from evenhand.instruments.overcorrection.data import (
    BenignData,
    BenignSource,
    OverCorrectionSampling,
    card,
    own_texts,
    sample,
)

__all__ = ["BenignData", "BenignSource", "OverCorrectionSampling", "card", "own_texts", "sample"]
