"""How often an audit without bias is flagged, and how often a ratio's interval holds the truth.

    python -m bench.simulated.selections [--audits 1000]    # half an hour; in proportion with fewer

Eight groups of equal size share n first places, as in Bloomberg's audit. "Four fifths" is the share
of audits with a ratio below 0.8; "flagged" that with one below what chance alone prints.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from evenhand.statistics.selection import ratio_interval, smallest_by_chance

SIZES = (500, 1000, 2000)
TRUE: Mapping[str, Sequence[float]] = {
    "none": [1.0] * 8,
    "one_low": [1.0] * 7 + [0.7],
    "one_high": [0.7] * 7 + [1.0],
    "slope": np.linspace(0.55, 1, 8).tolist(),
    "slight": np.linspace(0.85, 1, 8).tolist(),
}


def figures(audits: int) -> Iterator[tuple[str, float]]:
    """The share of null audits that are flagged, and the coverage for each truth and size."""
    rng = np.random.default_rng(0)
    for n in SIZES:
        candidates = np.full(8, n)
        drawn = rng.multinomial(n, np.full(8, 1 / 8), 20_000)
        smallest = drawn.min(axis=1) / drawn.max(axis=1)
        chance = smallest_by_chance(n, np.ones(8), candidates)
        yield f"four_fifths_{n}", float((smallest < 0.8).mean())
        yield f"flagged_{n}", float((smallest < chance).mean())
        for name, rates in TRUE.items():
            ratio, held, last = min(rates) / max(rates), 0, 0
            for seed in range(audits):
                seen = rng.multinomial(n, np.array(rates) / sum(rates))
                low, high = ratio_interval(seen, candidates, seed=seed)
                held += low <= ratio <= high
                low, high = ratio_interval(seen, candidates, 7, seed=seed)
                last += low <= rates[7] / max(rates) <= high
            yield f"smallest_{name}_{n}", held / audits
            yield f"of_one_group_{name}_{n}", last / audits


def favoured_without_bias(n: int, groups: int, runs: int = 10_000) -> float:
    """How often "favoured groups" is shown (t, 5 %) in runs of n rankings without bias: written
    anew, all runs at once."""
    rng, each = np.random.default_rng(5), np.arange(runs)
    first, total, squares = np.zeros((runs, groups)), np.zeros(runs), np.zeros(runs)
    for seen in range(n):
        winner = rng.integers(groups, size=runs)
        if seen:
            is_ahead = first > seen / groups + 1e-9
            value = is_ahead[each, winner] - is_ahead.mean(axis=1)
            total, squares = total + value, squares + value**2
        first[each, winner] += 1
    mean = total / (n - 1)
    se = np.sqrt((squares / (n - 1) - mean**2) / (n - 2))
    return float((np.abs(mean) > stdtrit(n - 2, 0.975) * se).mean())


if __name__ == "__main__":
    for n, groups in ((40, 4), (300, 2), (300, 8), (1000, 8)):
        print(f"{f'favoured_{groups}_groups_{n}':40} {favoured_without_bias(n, groups):.3f}")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--audits", type=int, default=1000)
    for key, value in figures(parser.parse_args().audits):
        print(f"{key:40} {value:.3f}", flush=True)
