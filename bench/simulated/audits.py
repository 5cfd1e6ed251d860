"""How often an audit of decisions without bias is flagged, how often the interval of the smallest
ratio holds the truth, and whether a planned size reaches its power.

    python -m bench.simulated.audits [--audits 200] [--draws 2000]    # an hour

Groups of equal size, everybody decided on alone, as in the crossed table of New York City's Local
Law 144. "Four fifths" is the share of audits with a ratio below 0.8; "flagged" that with one below
what chance alone prints for as many selected as there were.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from scipy.special import stdtrit

from evenhand.instruments.decisions.counted import ahead
from evenhand.statistics import selection
from evenhand.statistics._shared import FloatArray, IntArray
from evenhand.statistics.decided import dealt_anew, people_needed
from evenhand.statistics.selection import ratio_interval, smallest_among

GROUPS, RATE, SIZES = 14, 0.3, (200, 500, 1000)
TRUE: Mapping[str, Sequence[float]] = {
    "none": [1.0] * GROUPS,
    "one_low": [1.0] * (GROUPS - 1) + [0.7],
    "one_high": [0.7] * (GROUPS - 1) + [1.0],
    "slope": np.linspace(1, 0.55, GROUPS).tolist(),
}


def limits(seen: IntArray, size: int) -> FloatArray:
    """What chance alone prints for each audit, by how many it selected: computed at nine numbers
    of them and drawn straight between."""
    totals = seen.sum(axis=1)
    sizes = np.full(seen.shape[1], size)
    places = np.unique(np.linspace(totals.min(), totals.max(), 9).astype(np.int64))
    known = [smallest_among(dealt_anew([sizes], [n]), sizes) for n in places]
    return np.asarray(np.interp(totals, places, known))


def without_bias(size: int, audits: int, groups: int = GROUPS) -> tuple[float, float, float]:
    """The share of audits without bias below four fifths and flagged, and the median of the
    smallest ratio."""
    many = np.random.default_rng(size).binomial(size, RATE, (audits, groups))
    smallest = many.min(axis=1) / many.max(axis=1)
    flagged = smallest < limits(many, size)
    return float((smallest < 0.8).mean()), float(flagged.mean()), float(np.median(smallest))


def held(true: Sequence[float], size: int, audits: int, group: int | None = None) -> float:
    """How often the interval holds the true ratio: the smallest, or one group's."""
    rng, found = np.random.default_rng(size + 1), 0
    wanted = (min(true) if group is None else true[group]) / max(true)
    for seed in range(audits):
        seen = rng.binomial(size, RATE * np.array(true))
        low, high = ratio_interval(
            seen, np.full(len(true), size), group, seed=seed, each_alone=True
        )
        found += low <= wanted <= high
    return found / audits


def power(groups: int, rate: float, ratio: float, size: int, audits: int) -> float:
    """How often the group with this ratio is shown, each audit by its own limit."""
    rng = np.random.default_rng(groups)
    rates = np.full(groups, rate)
    rates[-1] *= ratio
    seen = rng.binomial(size, rates, (audits, groups))
    return float((seen[:, -1] / seen.max(axis=1) < limits(seen, size)).mean())


def favoured_without_bias(people: int, groups: int, rate: float, runs: int) -> float:
    """How often the score is told from 0 (t, 5 %) without bias."""
    rng, shown = np.random.default_rng(5), 0
    for _ in range(runs):
        group = rng.integers(groups, size=people)
        selected = (rng.random(people) < rate).astype(np.int64)
        table = pl.DataFrame({
            "item_id": [str(n) for n in range(people)], "stratum": [""] * people,
            "group": [f'["{n}"]' for n in group], "is_known": [True] * people,
            "selected": selected,
        })  # fmt: skip
        found = table.join(ahead(table), on="item_id")
        values = (found["beyond"] * (found["selected"] - selected.mean())).to_numpy()
        se = values.std(ddof=1) / np.sqrt(people)
        shown += abs(values.mean()) > stdtrit(people - 1, 0.975) * se
    return shown / runs


def figures(audits: int) -> Iterator[tuple[str, float]]:
    for size in SIZES:
        names = ("four_fifths", "flagged", "median_of_smallest")
        for name, value in zip(names, without_bias(size, 20_000), strict=True):
            yield f"{name}_{size}", value
    for groups, rate, ratio in ((14, 0.3, 0.8), (2, 0.3, 0.8), (14, 0.1, 0.7)):
        size = people_needed(groups, rate, ratio)
        named = f"{groups}_groups_{rate}_{ratio}"
        yield f"planned_{named}", size
        yield f"power_{named}", power(groups, rate, ratio, size, 10_000)
    for people, groups, rate in ((200, 2, 0.3), (1000, 14, 0.3), (1000, 14, 0.9)):
        name = f"favoured_{people}_{groups}_{rate}"
        yield name, favoured_without_bias(people, groups, rate, 5 * audits)
    for name, rates in TRUE.items():
        for size in SIZES:
            yield f"smallest_{name}_{size}", held(rates, size, audits)
        yield f"of_one_group_{name}_500", held(rates, 500, audits, GROUPS - 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--audits", type=int, default=200)
    parser.add_argument("--draws", type=int, default=selection.DRAWS)
    given = parser.parse_args()
    selection.DRAWS = given.draws
    for key, value in figures(given.audits):
        print(f"{key:40} {value:.3f}", flush=True)
