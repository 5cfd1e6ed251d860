"""How large a difference is, free of its scale. For an interval around one: `bootstrap`."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import Undefined
from evenhand.statistics._shared import ROUNDING, FloatArray, finite


def cohen_dz(differences: ArrayLike) -> float:
    """Paired: mean of the differences over their standard deviation.

    dz = d̄ / s_d (n − 1 in s_d). Source: Cohen 1988, chapter 2. Range: any.
    Undefined: fewer than two differences; all of them equal (x/0).
    """
    values = finite(differences, "differences")
    deviation = _deviation(values, "differences")
    return float(values.mean()) / deviation


def _deviation(values: FloatArray, name: str) -> float:
    if values.size < 2:
        raise Undefined(f"{values.size} {name}: a standard deviation needs two")
    deviation = float(values.std(ddof=1))
    if deviation <= ROUNDING * float(np.abs(values).max()):
        raise Undefined(f"all {name} are equal: x/0")
    return deviation
