"""P-values adjusted for how many were looked at.

Holm within the family of pre-declared endpoints; Benjamini-Hochberg for what is labelled
exploratory. Adjusted values are compared with alpha as they are: p ≤ alpha rejects.
An endpoint without a p-value still belongs to its family: count it in as 1.
"""

from collections.abc import Sequence

import numpy as np

from evenhand.core.errors import UserError
from evenhand.statistics._shared import FloatArray

# statsmodels has both, but its Holm calls gc.collect(): 0.1 s for three p-values. scipy.stats
# has the second, but takes most of two seconds to load, and every comparison needs it.


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Bounds the chance of any false rejection, under any dependence.

    p̃₍ᵢ₎ = max over j ≤ i of min(1, (m − j + 1)·p₍ⱼ₎), p ascending. Source: Holm 1979.
    Range: raw p to 1. Always defined; an empty family stays empty.
    """
    raw = _family(p_values)
    order = np.argsort(raw)
    stepped = np.maximum.accumulate(raw[order] * np.arange(raw.size, 0, -1))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return _at_least(raw, adjusted)


def holm_errors(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Give the error at which Holm decides each member: its p-value is at most this exactly where
    `holm` is at most alpha. An interval at this error agrees with the decision.

    α/(m − r + 1) for the r-th rejected, α/(m − R) for all that are not, with R rejected in all.
    Source: Holm 1979. Always defined; an empty family stays empty.
    """
    raw = _family(p_values)
    order = np.argsort(raw)
    rejected = int((np.asarray(holm(p_values)) <= alpha).sum())
    rank = np.minimum(np.arange(raw.size), rejected)
    errors = np.empty_like(raw)
    errors[order] = alpha / (raw.size - np.minimum(rank, raw.size - 1))
    return tuple(errors.tolist())


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Bounds the expected share of false ones among the rejections.

    p̃₍ᵢ₎ = min over j ≥ i of min(1, m·p₍ⱼ₎/j), p ascending. Source: Benjamini & Hochberg 1995;
    holds for independent or positively dependent tests. Range: raw p to 1. Always defined; an
    empty family stays empty.
    """
    raw = _family(p_values)
    order = np.argsort(raw)[::-1]  # the largest first, whose rank is m
    stepped = np.minimum.accumulate(raw[order] * (raw.size / np.arange(raw.size, 0, -1)))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(stepped, 1.0)
    return _at_least(raw, adjusted)


def benjamini_hochberg_errors(p_values: Sequence[float], alpha: float) -> tuple[float, ...]:
    """Give the error at which Benjamini-Hochberg decides each member, as `holm_errors` does.

    α·max(1, R)/m for all, with R rejected: intervals at this error have the false coverage rate α.
    Source: Benjamini & Yekutieli 2005. Always defined; an empty family stays empty.
    """
    rejected = sum(p <= alpha for p in benjamini_hochberg(p_values))
    return (alpha * max(1, rejected) / max(1, len(p_values)),) * len(p_values)


def _family(p_values: Sequence[float]) -> FloatArray:
    raw = np.asarray(p_values, dtype=np.float64)
    if raw.ndim != 1 or not ((raw >= 0) & (raw <= 1)).all():
        raise UserError("p-values lie in [0, 1]; count an endpoint without one in as 1")
    return raw


def _at_least(raw: FloatArray, adjusted: FloatArray) -> tuple[float, ...]:
    """Rounding must not make an adjusted p-value smaller than the raw one."""
    return tuple(np.maximum(raw, adjusted).tolist())
