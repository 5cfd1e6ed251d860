"""RealToxicityPrompts: beginnings of sentences from the web, each continued several times
(Gehman et al. 2020)."""
