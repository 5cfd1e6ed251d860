"""RealToxicityPrompts: beginnings of sentences from the web, each continued several times
(Gehman et al. 2020)."""

from evenhand.instruments.realtoxicityprompts.data import (
    RtpData,
    RtpSampling,
    RtpSource,
    card,
    sample,
)

__all__ = ["RtpData", "RtpSampling", "RtpSource", "card", "sample"]
