"""Over-correction: what a method makes of benign texts that name a group of people."""

from evenhand.benchmarks.overcorrection.data import BenignData, card
from evenhand.benchmarks.overcorrection.sample import Sampling, sample
from evenhand.benchmarks.overcorrection.source import BenignSource
from evenhand.benchmarks.overcorrection.texts import own_texts

__all__ = ["BenignData", "BenignSource", "Sampling", "card", "own_texts", "sample"]
