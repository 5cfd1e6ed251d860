"""How often an audit without bias is flagged, and how often a ratio's interval holds the truth.

    python -m bench.simulated.selections [--short]    # a quarter of an hour, or a minute

Eight groups of equal size share n first places, as in Bloomberg's audit. "Four fifths" is the share
of audits with a ratio below 0.8; "flagged" that with one below what chance alone prints.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from evenhand.statistics.selection import ratio_interval, smallest_by_chance

SIZES = (500, 1000, 2000)
TRUE: Mapping[str, Sequence[float]] = {
    "none": [1.0] * 8,
    "one_low": [1.0] * 7 + [0.7],
    "one_high": [0.7] * 7 + [1.0],
    "slope": np.linspace(0.55, 1, 8).tolist(),
    "slight": np.linspace(0.85, 1, 8).tolist(),
}


def figures(*, short: bool) -> dict[str, float]:
    """The share of null audits that are flagged, and the coverage for each truth and size."""
    found, audits = {}, 100 if short else 1000
    rng = np.random.default_rng(0)
    for n in SIZES:
        candidates = np.full(8, n)
        drawn = rng.multinomial(n, np.full(8, 1 / 8), 20_000)
        smallest = drawn.min(axis=1) / drawn.max(axis=1)
        chance = smallest_by_chance(n, np.ones(8), candidates)
        found[f"four_fifths_{n}"] = float((smallest < 0.8).mean())
        found[f"flagged_{n}"] = float((smallest < chance).mean())
        for name, rates in TRUE.items():
            ratio, held, last = min(rates) / max(rates), 0, 0
            for seed in range(audits):
                seen = rng.multinomial(n, np.array(rates) / sum(rates))
                low, high = ratio_interval(seen, candidates, seed=seed)
                held += low <= ratio <= high
                low, high = ratio_interval(seen, candidates, 7, seed=seed)
                last += low <= rates[7] / max(rates) <= high
            found[f"smallest_{name}_{n}"] = held / audits
            found[f"of_one_group_{name}_{n}"] = last / audits
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true")
    for key, value in figures(short=parser.parse_args().short).items():
        print(f"{key:40} {value:.3f}", flush=True)
