"""How often the interval of an agreement holds the truth, where the truth is known.

    python -m bench.simulated.agreement            # 1,500 studies a cell
    python -m bench.simulated.agreement --short    # 150

Three raters see a mark from 0 to 10 with noise of their own; so does a judge, with more of it.
"""

import argparse
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import Undefined
from evenhand.statistics.agreement import (
    JackknifeInterval,
    alpha_sums,
    fleiss_of_totals,
    fleiss_sums,
    jackknife_agreement,
    jackknife_difference,
    weighted_of_totals,
    weighted_sums,
)
from evenhand.statistics.bootstrap import of_all

Floats = NDArray[np.float64]
ITEMS, NOISES, MANY = (15, 30), (0.5, 1.0, 2.5), 60_000
SPREADS = ("even", "uneven")
_UNEVEN = (0, 2, 5, 8, 9, 10)  # marks that texts deserve, equally often
_MARKS = np.arange(11)


def study(rng: np.random.Generator, items: int, noise: float, spread: str) -> Floats:
    """Marks, a row for each of three raters and then the judge."""
    even = rng.integers(0, 11, items).astype(float)
    deserved = even if spread == "even" else rng.choice(_UNEVEN, items).astype(float)
    own = np.array([[noise], [noise], [noise], [noise + 1]])
    return np.clip(np.rint(deserved + own * rng.standard_normal((4, items))), 0, 10)


def _kappas(totals: Floats) -> Floats:
    parts = np.split(totals, totals.shape[1] // 5, axis=1)
    return np.asarray(np.mean([weighted_of_totals(part) for part in parts], axis=0))


def _fleiss(marks: Floats) -> Floats:
    return fleiss_sums((marks[:3, :, None] == _MARKS).sum(axis=0))


def _each(marks: Floats) -> Floats:
    return np.hstack([weighted_sums(marks[3], rater) for rater in marks[:3]])


def _among(marks: Floats) -> Floats:
    return np.hstack([weighted_sums(one, two) for one, two in combinations(marks[:3], 2)])


def intervals(marks: Floats) -> dict[str, JackknifeInterval]:
    return {
        "alpha": jackknife_agreement(*alpha_sums(marks[:3], "ordinal")),
        "kappa": jackknife_agreement(weighted_sums(marks[0], marks[1]), weighted_of_totals),
        "fleiss": jackknife_agreement(_fleiss(marks), fleiss_of_totals),
        "judge": jackknife_difference(_each(marks), _among(marks), _kappas),
    }


def truth(noise: float, spread: str) -> dict[str, float]:
    marks = study(np.random.default_rng(0), MANY, noise, spread)
    return {
        "alpha": of_all(*alpha_sums(marks[:3], "ordinal")),
        "kappa": of_all(weighted_sums(marks[0], marks[1]), weighted_of_totals),
        "fleiss": of_all(_fleiss(marks), fleiss_of_totals),
        "judge": of_all(_each(marks), _kappas) - of_all(_among(marks), _kappas),
    }


def figures(short: bool) -> dict[str, float]:
    """For each statistic and number of items the least share of studies whose interval holds the
    truth, and the largest whose interval lies above it. A study without an interval holds none."""
    studies = 150 if short else 1_500
    found: dict[str, float] = {}
    for spread in SPREADS:
        for noise in NOISES:
            true = truth(noise, spread)
            for items in ITEMS:
                rng = np.random.default_rng(items)
                shares = _shares(rng, studies, items, noise, spread, true)
                for name, (held, above) in shares.items():
                    least, most = f"{name} {items} held", f"{name} {items} above"
                    found[least] = min(found.get(least, 1.0), held)
                    found[most] = max(found.get(most, 0.0), above)
    return found


def _shares(
    rng: np.random.Generator,
    studies: int,
    items: int,
    noise: float,
    spread: str,
    true: dict[str, float],
) -> dict[str, tuple[float, float]]:
    counted = {name: [0, 0] for name in true}
    for _ in range(studies):
        try:
            found = intervals(study(rng, items, noise, spread))
        except Undefined:
            continue
        for name, one in found.items():
            counted[name][0] += one.low <= true[name] <= one.high
            counted[name][1] += one.low > true[name]
    return {name: (held / studies, above / studies) for name, (held, above) in counted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    for name, share in figures(parser.parse_args().short).items():
        print(f"{name:<18} {share:.1%}")


if __name__ == "__main__":
    main()
