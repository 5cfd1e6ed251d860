"""The same questions are asked again and again: has what answers them changed? Any look may be the
last one, so that the test must hold at each of them.

While nothing changes, the looks at a cluster are exchangeable: which of the values that it has
given so far is today's is chance. So today's total is compared with totals that draw a look for
each cluster at random. Its rank among them is uniform, and independent of the ranks of other looks
among theirs; as a normal quantile it is a score z that is exactly standard normal, whatever the
values are, also for few clusters. Evidence of a change is then the detector of Shiryaev and
Roberts, over shifts of z. Clusters must vary by themselves within a look: what
moves a whole look, such as a server under load, counts as a change.

Sources: conformal test martingales, Vovk 2021; e-detectors, Shin, Ramdas & Rinaldo 2024. Our
choice: the looks of each cluster are exchanged, and not whole looks, whose ranks say little while
there are few of them. (A bet on the values themselves in the place of their rank has mean 1 at each
look, and still no guarantee at a look that was chosen by looking.)
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from evenhand.core.errors import UserError
from evenhand.statistics._shared import FloatArray

SHIFTS = (0.5, 1.0, 2.0, 3.0, -0.5, -1.0, -2.0, -3.0)  # our choice: of z, up and down
DRAWS = 1_999
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm says at which look it was raised, from which one on the change is likeliest, and
    whether the values went up."""

    look: int
    since: int
    upwards: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTrace:
    """What the looks show, in their order. `evidence` grows by 1 a look, on average, while nothing
    changes, and starts again after an alarm."""

    scores: tuple[float, ...]  # z of each look; nan for a look that starts again
    evidence: tuple[float, ...]
    alarms: tuple[Alarm, ...]


def watched(
    looks: ArrayLike, threshold: float, *, draws: int = DRAWS, seed: int = 0
) -> ChangeTrace:
    """Detect changes in a series of looks.

    An alarm is raised where the evidence R = mean over shifts d of R_d, R_d = (1 + R_d before) ·
    exp(d·z − d²/2), reaches the threshold. While nothing changes, the first alarm comes after that
    many looks on average, or later. Later looks are compared with those from the look of an alarm
    on.

    Args:
        looks: One row per look, one column per cluster, NaN where a cluster is incomplete.
        threshold: The average number of looks until a false alarm, above 1.
        draws: The number of random totals that each look is compared with.
        seed: The seed of these totals.

    Raises:
        UserError: If the threshold is 1 or less.
    """
    values = np.atleast_2d(np.asarray(looks, dtype=np.float64))
    if not threshold > 1:
        raise UserError(f"the threshold is a number of looks above 1, not {threshold:g}")
    scores, evidence, alarms = [], [], []
    begun, detector = 0, _Detector()
    counted: list[int] = []  # the looks that showed anything
    for number in range(len(values)):
        if number == begun:
            scores.append(np.nan)
            evidence.append(0.0)
            continue
        z = score(values[begun : number + 1], np.random.default_rng((seed, number)), draws)
        scores.append(z)
        evidence.append(detector.add(z))
        counted += [] if np.isnan(z) else [number]
        if evidence[-1] >= threshold:
            steps, upwards = detector.likeliest()
            alarms.append(Alarm(look=number, since=counted[-steps], upwards=upwards))
            begun, detector = number, _Detector()
    return ChangeTrace(scores=tuple(scores), evidence=tuple(evidence), alarms=tuple(alarms))


def score(looks: FloatArray, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """Return the z value of the last look among all looks at the same clusters. It is standard
    normal while the looks are exchangeable.

    z = Φ⁻¹((#{drawn < seen} + u·(1 + #{drawn = seen})) / (1 + draws)), u uniform: the seen total is
    one of 1 + draws totals that are drawn alike.

    Args:
        looks: One row per look, the last one at the end. A cluster that the last look lacks is left
            out.
        rng: The source of the random totals.
        draws: The number of random totals.

    Returns:
        The z value; NaN if no cluster is left, or if no cluster ever changed its value, since all
        totals are then the same.
    """
    present = looks[:, ~np.isnan(looks[-1])]
    if not present.shape[1] or (np.isnan(present) | (present == present[-1])).all():
        return float("nan")
    unknown = np.isnan(present)
    filled = present
    if unknown.any():  # known values come first in their column, so that one is drawn by its place
        filled = np.take_along_axis(present, np.argsort(unknown, axis=0, kind="stable"), axis=0)
    counts = (~unknown).sum(axis=0)
    places = (rng.random((draws, len(counts))) * counts).astype(np.int64)
    resampled = filled[places, np.arange(len(counts))].sum(axis=1)
    observed = present[-1].sum()
    near = 1e-9 * max(1.0, float(np.nanmax(np.abs(filled))))
    below, equal = (resampled < observed - near).sum(), (np.abs(resampled - observed) <= near).sum()
    share = (below + rng.random() * (1 + equal)) / (1 + draws)
    return float(scipy.special.ndtri(np.clip(share, _LEAST, 1 - _LEAST)))


class _Detector:
    """The evidence of a change at any look so far, for each shift of z."""

    def __init__(self) -> None:
        self._shifts = np.array(SHIFTS)
        self._evidence = np.zeros(len(SHIFTS))
        self._best = np.zeros(len(SHIFTS))  # the most that any beginning gives, as a logarithm
        self._steps = np.zeros(len(SHIFTS), dtype=np.int64)  # how many looks that beginning is ago

    def add(self, z: float) -> float:
        """Take a look in; one that shows nothing leaves all as it was."""
        if np.isnan(z):
            return float(self._evidence.mean())
        step = self._shifts * z - self._shifts**2 / 2
        self._evidence = (1 + self._evidence) * np.exp(step)
        goes_on = self._best > 0
        self._steps = np.where(goes_on, self._steps + 1, 1)
        self._best = np.where(goes_on, self._best, 0.0) + step
        return float(self._evidence.mean())

    def likeliest(self) -> tuple[int, bool]:
        """Give how many looks ago the change is likeliest to have begun, today's being 1, and
        whether it went up."""
        best = int(np.argmax(self._best))
        return int(self._steps[best]), bool(self._shifts[best] > 0)
