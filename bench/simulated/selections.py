"""How often an audit of rankings without bias is flagged, and how often the intervals of all groups
hold the true ratios at once.

    python -m bench.simulated.selections [--audits 1000]    # some minutes

Eight groups of equal size share n first places, as in Bloomberg's audit. "Four fifths" is the share
of audits with an impact ratio below 0.8; "flagged" that whose verdict is "detected".
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evenhand.findings.ratios import state_of
from evenhand.statistics._shared import IntArray
from evenhand.statistics.selection import (
    Chance,
    FamilyOfTests,
    FilledSelections,
    GroupContrast,
    Grouped,
    Selections,
    p_among,
    smallest_p,
)

SIZES, DRAWS = (500, 1000, 2000), 1000
TRUE: Mapping[str, Sequence[float]] = {
    "none": [1.0] * 8,
    "one_low": [1.0] * 7 + [0.7],
    "one_high": [0.7] * 7 + [1.0],
    "slope": np.linspace(0.55, 1, 8).tolist(),
    "slight": np.linspace(0.85, 1, 8).tolist(),
}


class Audits:
    """Audits of n rankings with one candidate of each of eight groups: they share their draws."""

    def __init__(self, n: int) -> None:
        self.n, self.by_chance = n, Chance.drawn(n, 1 / 8)
        self.drawn = np.random.default_rng(0).multinomial(n, np.full(8, 1 / 8), DRAWS)
        every = Grouped(self.drawn, [self.by_chance] * 8, np.full(8, n / 8))
        self.family = FamilyOfTests((smallest_p([every]),))

    def contrasts(self, first: IntArray) -> list[GroupContrast]:
        fillings = [
            FilledSelections(int(x), self.n, self.n / 8, 1 / self.n, self.by_chance) for x in first
        ]
        return [self.family.contrast(Selections(one, one, one)) for one in fillings]

    def flagged(self, first: IntArray) -> bool:
        p = min(float(self.by_chance.two_sided()[first].min()),
                p_among(first, np.full(8, self.n / 8), self.drawn))  # fmt: skip
        return self.family.adjusted(p) <= 0.05


def figures(audits: int) -> Iterator[tuple[str, float]]:
    """The share of null audits that are flagged, and the coverage for each truth and size."""
    rng = np.random.default_rng(1)
    for n in SIZES:
        made = Audits(n)
        drawn = rng.multinomial(n, np.full(8, 1 / 8), audits)
        yield f"four_fifths_{n}", float((drawn.min(axis=1) / drawn.max(axis=1) < 0.8).mean())
        yield f"flagged_{n}", float(np.mean([made.flagged(row) for row in drawn]))
        for name, rates in TRUE.items():
            true = np.array(rates)
            ratios = true / ((true.sum() - true) / 7)
            held = shown = 0
            for row in rng.multinomial(n, true / true.sum(), audits // 5):
                found = made.contrasts(row)
                held += all(one.ratio_low <= ratio <= one.ratio_high
                            for one, ratio in zip(found, ratios, strict=True))  # fmt: skip
                shown += any(state_of(one) == "detected" for one in found)
            yield f"held_{name}_{n}", held / (audits // 5)
            yield f"a_group_shown_{name}_{n}", shown / (audits // 5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--audits", type=int, default=1000)
    for key, value in figures(parser.parse_args().audits):
        print(f"{key:40} {value:.3f}", flush=True)
