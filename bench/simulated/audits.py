"""How often an audit of decisions without bias is flagged, how often the interval of a group's
ratio holds the truth, and whether a planned size reaches its power.

    python -m bench.simulated.audits [--audits 1000]    # a quarter of an hour

Groups of equal size, everybody decided on alone, as in the crossed table of New York City's Local
Law 144. "Four fifths" is the share of audits with an impact ratio below 0.8; "flagged" that whose
verdict is "detected".
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bench.simulated.people import judged_counts
from evenhand.findings.ratios import GroupResults
from evenhand.statistics._shared import IntArray
from evenhand.statistics.selection import people_needed

GROUPS, RATE, SIZES, DRAWS = 14, 0.3, (200, 500, 1000), 1000
TRUE: Mapping[str, Sequence[float]] = {
    "none": [1.0] * GROUPS,
    "one_low": [1.0] * (GROUPS - 1) + [0.7],
    "one_high": [0.7] * (GROUPS - 1) + [1.0],
    "slope": np.linspace(1, 0.55, GROUPS).tolist(),
}


def _audit(size: int, selected: IntArray) -> GroupResults:
    return judged_counts(np.full(len(selected), size), selected, draws=DRAWS)


def without_bias(size: int, audits: int, groups: int = GROUPS) -> tuple[float, float, float]:
    """The share of audits without bias below four fifths and flagged, and the median of the
    smallest impact ratio."""
    many = np.random.default_rng(size).binomial(size, RATE, (audits, groups))
    smallest = many.min(axis=1) / many.max(axis=1)
    flagged = [_audit(size, row).state == "detected" for row in many]
    return float((smallest < 0.8).mean()), float(np.mean(flagged)), float(np.median(smallest))


def held(true: Sequence[float], size: int, audits: int) -> float:
    """How often the intervals of all groups hold the true ratios to the others, at once."""
    rng, found = np.random.default_rng(size + 1), 0
    rates = np.array(true)
    ratios = rates / ((rates.sum() - rates) / (len(rates) - 1))
    for _ in range(audits):
        rows = _audit(size, rng.binomial(size, RATE * rates)).groupings[0].tested
        found += all(row.contrast is not None and
                     row.contrast.ratio_low <= ratio <= row.contrast.ratio_high
                     for row, ratio in zip(rows, ratios, strict=True))  # fmt: skip
    return found / audits


def power(groups: int, rate: float, ratio: float, size: int, audits: int) -> float:
    """How often the group with this ratio is shown to be behind."""
    rng, found = np.random.default_rng(groups), 0
    rates = np.full(groups, rate)
    rates[-1] *= ratio
    for row in rng.binomial(size, rates, (audits, groups)):
        last = _audit(size, row).groupings[0].tested[-1].contrast
        found += last is not None and last.shown and last.ratio < 1
    return found / audits


def figures(audits: int) -> Iterator[tuple[str, float]]:
    for size in SIZES:
        names = ("four_fifths", "flagged", "median_of_smallest")
        for name, value in zip(names, without_bias(size, audits), strict=True):
            yield f"{name}_{size}", value
    for groups, rate, ratio in ((14, 0.3, 0.8), (2, 0.3, 0.8), (14, 0.1, 0.7)):
        size = people_needed(groups, rate, ratio)
        named = f"{groups}_groups_{rate}_{ratio}"
        yield f"planned_{named}", size
        yield f"power_{named}", power(groups, rate, ratio, size, audits)
    for name, rates in TRUE.items():
        yield f"held_{name}_500", held(rates, 500, audits)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--audits", type=int, default=1000)
    for key, value in figures(parser.parse_args().audits):
        print(f"{key:40} {value:.3f}", flush=True)
