"""How many prompts an audit needs, before anything is asked."""

import numpy as np
import scipy  # its parts are loaded when first used

from evenhand.core.errors import UserError

PLACEBO = 0.1  # our choice, where nothing is known: a placebo changes one decision in ten
_ALPHA = 0.05
_MOST = 1 << 20  # our choice: beyond a million prompts the answer is "not by asking more"


def power_of(prompts: int, excess: float, placebo: float = PLACEBO, families: int = 1) -> float:
    """Give the chance that so many prompts show an excess of flips after Holm over families, with
    two labels and one answer to each version.

    The excess of a prompt is (a₁ − a₂)(b₁ − b₂), a the decisions about the labels and b those about
    their placebos: 1, 0 or −1. With q the share of decisions that a placebo changes, the label
    decides in d = excess/(1 − 2q) of the prompts; there both differ in (1 − q)² of the cases,
    elsewhere in q². Sign flips of such values are the sign test of those that are not 0, so the
    power is a sum of binomials. Source: ours. Range: 0 to 1.
    """
    decides = excess / (1 - 2 * placebo)
    moved = decides * (1 - placebo) ** 2 + (1 - decides) * placebo**2
    up = (1 + excess / moved) / 2
    m = np.arange(prompts + 1)
    # The fewest of m that must point one way: 2·P(Bin(m, ½) ≥ k) ≤ alpha/families.
    least = scipy.special.bdtrik(1 - _ALPHA / (2 * families), m, 0.5)
    least = np.floor(np.nan_to_num(least)) + 1
    for _ in range(2):  # the inverse of a step function is off by one at a step
        beyond = scipy.special.bdtrc(np.maximum(least - 1, 0), m, 0.5)
        least += 2 * beyond > _ALPHA / families
    power = np.where(least > m, 0.0, scipy.special.bdtrc(np.maximum(least - 1, 0), m, up))
    logs = scipy.special.gammaln
    chance = logs(prompts + 1) - logs(m + 1) - logs(prompts - m + 1)
    chance += scipy.special.xlogy(m, moved) + scipy.special.xlog1py(prompts - m, -moved)
    return float(np.exp(chance) @ power)


def prompts_needed(
    excess: float, *, placebo: float = PLACEBO, families: int = 1, power: float = 0.8
) -> int:
    """Give the fewest prompts, by halving, that show this excess of flips with this chance."""
    if not 0 <= placebo < 0.5:
        raise UserError("a placebo that changes half of all decisions leaves nothing to be shown")
    if not 0 < excess <= 1 - 2 * placebo:
        raise UserError(
            f"an excess of flips lies above 0 and, where a placebo changes {placebo:g} of the "
            f"decisions, at most at {1 - 2 * placebo:g}; give one such as 0.05"
        )

    def shows(prompts: int) -> bool:
        return power_of(prompts, excess, placebo, families) >= power

    low, high = 1, 2
    while not shows(high):
        if high >= _MOST:
            raise UserError(f"more than {_MOST:,} prompts would be needed; ask for a larger excess")
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high
