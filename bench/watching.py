"""How often does a watch raise a false alarm, and after how many looks does it find a change?

    python bench/watching.py [--years 1000] [--changes 200]

A year is 365 looks at a model that does not change: each cluster has a chance of its own, most of
them near 0 or 1, and every look draws anew. Then the chances rise from one look on.
"""

import argparse
import time

import numpy as np

from evenhand.statistics.change_detection import watched

EVERY = 1_000  # looks between false alarms, as the command has it


def chances(rng: np.random.Generator, clusters: int) -> np.ndarray:
    return rng.beta(0.5, 0.5, clusters)


def looks(rng: np.random.Generator, chance: np.ndarray, count: int) -> np.ndarray:
    return (rng.random((count, len(chance))) < chance).astype(float)


def false_alarms(years: int, clusters: int, draws: int) -> int:
    found = 0
    for year in range(years):
        rng = np.random.default_rng((1, year))
        table = looks(rng, chances(rng, clusters), 365)
        found += len(watched(table, EVERY, draws=draws, seed=year).alarms)
    return found


def delays(changes: int, clusters: int, shift: float, before: int) -> list[float]:
    """Count the looks from a change to its alarm; a false alarm before it is none."""
    found = []
    for number in range(changes):
        rng = np.random.default_rng((2, number))
        chance = chances(rng, clusters)
        moved = chance + shift * (1 - chance) / np.mean(1 - chance)  # by `shift` on the whole
        table = np.concatenate([looks(rng, chance, before), looks(rng, np.clip(moved, 0, 1), 60)])
        alarms = [one.look for one in watched(table, EVERY, seed=number).alarms]
        after = [look - before + 1 for look in alarms if look >= before]
        found.append(float(after[0]) if after else float("inf"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=1_000)
    parser.add_argument("--changes", type=int, default=200)
    given = parser.parse_args()
    began = time.perf_counter()
    seen = false_alarms(given.years, 60, draws=199)
    stated = given.years * 365 / EVERY
    print(f"{given.years} years of daily looks, 60 clusters: {seen} alarms, at most {stated:.0f}")
    said = []
    for clusters in (60, 343):
        for shift in (0.05, 0.1):
            for before in (7, 30):
                took = delays(given.changes, clusters, shift, before)
                quarter = np.quantile(took, [0.5, 0.9], method="higher")
                print(f"{clusters} clusters, +{shift}, after {before} looks: found by look "
                      f"{quarter[0]:g} (half), {quarter[1]:g} (nine in ten)")  # fmt: skip
                if clusters == 343 and before == 30 and shift == 0.05:
                    said = [quarter[0], quarter[1]]
    print(f"RESULT false_alarms={seen} stated={stated:.0f} found_half={said[0]:g} "
          f"found_nine_tenths={said[1]:g} seconds={time.perf_counter() - began:.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
