"""Judges under test, after MALIBU (Mirza et al. 2025): the same text under different labels of its
author. Only what a label does to a judgement is measured; text and slot are balanced out."""
