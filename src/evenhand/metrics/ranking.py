"""How well a reward model ranks pairs (paper 002, the loss of section 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import Undefined


@dataclass(frozen=True, slots=True)
class Ranking:
    """Loss: 0 and up, lower is better, ln 2 where nothing is told apart. Accuracy: 0 to 1."""

    loss: float
    accuracy: float
    n: int


def pair_losses(gaps: Sequence[float] | ArrayLike) -> NDArray[np.float64]:
    """-log sigmoid(gap), one a pair; a gap is the reward of the chosen less that of the rejected.

    Written as log(1 + exp(-gap)) without the exponential of a large number: -40 gives 40.
    """
    return np.logaddexp(0.0, -np.asarray(gaps, dtype=np.float64))


def ranking(gaps: Sequence[float] | ArrayLike) -> Ranking:
    """Mean loss and accuracy. Two equal rewards are not a right ranking. Undefined on no pairs,
    and where a reward is not a number."""
    values = np.asarray(gaps, dtype=np.float64)
    if values.size == 0:
        raise Undefined("a ranking needs a pair; there is none")
    if np.isnan(values).any():
        raise Undefined("a reward is not a number")
    return Ranking(float(pair_losses(values).mean()), float((values > 0).mean()), values.size)
