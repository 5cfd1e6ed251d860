"""Before and after on the same items: what changed, and whether chance explains it."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when first used
from numpy.typing import ArrayLike

from evenhand.errors import Undefined, UserError
from evenhand.statistics._shared import ROUNDING, FloatArray, finite
from evenhand.statistics.clusters import cluster_sums

ENUMERABLE = 20  # our choice: 2²⁰ sign patterns take a few milliseconds
_AT_ONCE = 2_000_000  # signs held at once; part of what a seed means, so it is not an argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Right or wrong, before and after. `missing` = pairs where one of the two has no verdict."""

    fixed: int  # wrong before, right after
    broken: int  # right before, wrong after
    both_right: int
    both_wrong: int
    missing: int

    @property
    def n(self) -> int:
        return self.fixed + self.broken + self.both_right + self.both_wrong

    @property
    def net(self) -> int:
        return self.fixed - self.broken

    @property
    def coverage(self) -> float | None:
        pairs = self.n + self.missing
        return self.n / pairs if pairs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """`flips` = sign patterns looked at: all there are if `exact`, else that many random ones."""

    mean: float
    p_two_sided: float
    n: int
    units: int  # what was flipped: clusters, or rows if there are none
    flips: int
    exact: bool


def changes(before: Sequence[bool | None], after: Sequence[bool | None]) -> Changes:
    """The 2 × 2 table of paired verdicts. None = no verdict: counted as missing, never as wrong."""
    if len(before) != len(after):
        raise UserError(f"before and after must pair up, but have {len(before)} and {len(after)}")
    pairs = [(b, a) for b, a in zip(before, after, strict=True) if b is not None and a is not None]
    return Changes(
        fixed=sum(not b and bool(a) for b, a in pairs),
        broken=sum(bool(b) and not a for b, a in pairs),
        both_right=sum(bool(b) and bool(a) for b, a in pairs),
        both_wrong=sum(not b and not a for b, a in pairs),
        missing=len(before) - len(pairs),
    )


def mcnemar_p(fixed: int, broken: int) -> float:
    """Exact McNemar test, two-sided: is a change as likely to break an item as to fix it?

    p = P(|X − m/2| ≥ |fixed − m/2|), X ~ Binomial(m, 1/2), m = fixed + broken.
    Source: McNemar 1947, exact form. Range: 0 to 1. Nothing changed: 1, no evidence of anything.
    It takes items for independent; of clustered items use `sign_flip` with their clusters.
    """
    if fixed < 0 or broken < 0:
        raise UserError(f"counts cannot be negative: fixed {fixed}, broken {broken}")
    if fixed + broken == 0:
        return 1.0
    fewer = scipy.special.bdtr(min(fixed, broken), fixed + broken, 0.5)
    return min(1.0, 2 * float(fewer))  # the other side is as likely


def sign_flip(
    differences: ArrayLike,
    clusters: Iterable[Hashable] | None = None,
    *,
    seed: int = 0,
    draws: int = 10_000,
) -> SignFlip:
    """Paired permutation test, two-sided: would the mean be as large with signs thrown at random?

    p = share of sign patterns s with |Σ s_g·S_g| ≥ |Σ S_g|, S_g the sum of cluster g: a cluster
    flips as a whole. All patterns if at most twenty sums differ from 0 (the others change nothing),
    else `draws` random ones and p = (1 + hits)/(1 + draws), which is never 0.
    Sums nearer than rounding are ties and count. Source: Fisher 1935; Phipson & Smyth 2010.
    Range: above 0 to 1; all differences 0 gives 1. Undefined: no differences.
    """
    rows = finite(differences, "differences")
    if not rows.size:
        raise Undefined("no differences")
    if draws < 1:
        raise UserError(f"{draws} draws give no p-value; 10,000 are usual")
    sums = rows if clusters is None else cluster_sums(clusters, rows)[:, 0]
    sizes = np.abs(rows) if clusters is None else cluster_sums(clusters, np.abs(rows))[:, 0]
    moving = np.abs(sums[np.abs(sums) > ROUNDING * sizes])
    bar = abs(float(sums.sum())) - ROUNDING * float(sizes.sum())
    exact = moving.size <= ENUMERABLE
    if exact:
        flips = 2**moving.size
        p = float(np.mean(np.abs(_every_total(moving)) >= bar))
    else:
        flips = draws
        p = (1 + _hits(moving, bar, np.random.default_rng(seed), draws)) / (1 + draws)
    return SignFlip(
        mean=float(rows.mean()),
        p_two_sided=p,
        n=rows.size,
        units=sums.size,
        flips=flips,
        exact=exact,
    )


def sign_flip_without_spread(difference: float, clusters: int) -> float:
    """`sign_flip`'s p-value where every cluster changed by the same mean, so that t has no value.

    Of 2^G sign patterns only two are as extreme: 2^(1−G). Range: above 0 to 1; no change: 1.
    """
    return 1.0 if difference == 0 else float(2.0 ** (1 - clusters))


def _every_total(sums: FloatArray) -> FloatArray:
    """Every signed total with the first sign fixed: flipping all signs keeps |total|."""
    totals = sums[:1] if sums.size else np.zeros(1)
    for value in sums[1:]:
        totals = np.concatenate([totals + value, totals - value])
    return totals


def _hits(sums: FloatArray, bar: float, rng: np.random.Generator, draws: int) -> int:
    batch = max(1, _AT_ONCE // sums.size)
    hits = 0
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        positive = rng.integers(0, 2, size=(size, sums.size), dtype=np.int8)
        totals = 2 * (positive @ sums) - math.fsum(sums)
        hits += int((np.abs(totals) >= bar).sum())
    return hits
