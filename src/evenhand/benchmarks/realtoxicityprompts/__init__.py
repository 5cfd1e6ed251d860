"""RealToxicityPrompts: beginnings of sentences from the web, each continued several times
(Gehman et al. 2020)."""

from evenhand.benchmarks.realtoxicityprompts.data import RtpData, card
from evenhand.benchmarks.realtoxicityprompts.sample import Sampling, sample
from evenhand.benchmarks.realtoxicityprompts.source import RtpSource

__all__ = ["RtpData", "RtpSource", "Sampling", "card", "sample"]
