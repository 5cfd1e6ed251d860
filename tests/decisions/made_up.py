"""People who were decided on with and without bias, as arrays: for every test of what a verdict on
them is worth.

    for people in without_bias(400): verdict_of(people.group, people.selected, people.stratum)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.instruments.decisions.judged import judged_counts


@dataclass(frozen=True)
class People:
    """A made-up table: who each person is, whether selected (None: missing), and where."""

    kind: str
    group: list[str]
    selected: list[int | None]
    stratum: list[str] | None = None

    def shuffled(self, rng: np.random.Generator) -> "People":
        order = rng.permutation(len(self.group)).tolist()
        return People(
            self.kind,
            [self.group[place] for place in order],
            [self.selected[place] for place in order],
            None if self.stratum is None else [self.stratum[place] for place in order],
        )


def counted_people(
    kind: str, cells: Sequence[tuple[str, int, int]] | Sequence[tuple[str, int, int, int]]
) -> People:
    """Give people by their counts: group, people, selected, and how many more have no outcome."""
    group: list[str] = []
    selected: list[int | None] = []
    for name, people, chosen, *missing in cells:
        lost = missing[0] if missing else 0
        group += [name] * (people + lost)
        selected += [1] * chosen + [0] * (people - chosen) + [None] * lost
    return People(kind, group, selected)


def _drawn(kind: str, sizes: Sequence[int], rate: float, rng: np.random.Generator) -> People:
    chosen = rng.binomial(list(sizes), rate)
    cells = [(f"g{n}", size, int(chosen[n])) for n, size in enumerate(sizes)]
    return counted_people(kind, cells)


def _even(rng: np.random.Generator) -> People:
    return _drawn("sizes", [int(rng.integers(20, 400))] * int(rng.integers(2, 8)),
                  float(rng.uniform(0.05, 0.95)), rng)  # fmt: skip


def _skewed(rng: np.random.Generator) -> People:
    sizes = [int(2000 / 3**n) + 2 for n in range(int(rng.integers(2, 6)))]
    return _drawn("skew", sizes, float(rng.uniform(0.02, 0.5)), rng)


def _tiny(rng: np.random.Generator) -> People:
    tiny = [int(rng.integers(1, 6)) for _ in range(int(rng.integers(1, 5)))]
    return _drawn("tiny groups", [300, 300, *tiny], 0.3, rng)


def _quotas(rng: np.random.Generator) -> People:
    """Every group at the same rate, give or take one person."""
    size, share = int(rng.integers(50, 300)), float(rng.uniform(0.1, 0.9))
    cells = [(f"g{n}", size, round(size * share) + int(rng.integers(-1, 2))) for n in range(8)]
    return counted_people("quotas", cells)


def _lost(people: People, kind: str, chance: Callable[[str], float], rng: np.random.Generator
          ) -> People:  # fmt: skip
    gone = rng.random(len(people.group)) < [chance(group) for group in people.group]
    kept = [None if lost else one for one, lost in zip(people.selected, gone, strict=True)]
    return People(kind, people.group, kept)


def _lost_at_random(rng: np.random.Generator) -> People:
    return _lost(_even(rng), "missing at random", lambda group: 0.04, rng)


def _lost_by_group(rng: np.random.Generator) -> People:
    return _lost(_even(rng), "missing by group", lambda group: 0.15 * (group == "g0"), rng)


def _ties(rng: np.random.Generator) -> People:
    return _drawn("few people", [int(rng.integers(3, 12))] * int(rng.integers(2, 5)), 0.5, rng)


def _strata(rng: np.random.Generator) -> People:
    """Groups apply where other shares are taken; within a requisition nothing hangs on them."""
    group: list[str] = []
    selected: list[int | None] = []
    stratum: list[str] = []
    for place in range(6):
        rate, share = rng.uniform(0.05, 0.8), rng.uniform(0.1, 0.9)
        names = rng.choice(["g0", "g1"], 60, p=[share, 1 - share])
        group += names.tolist()
        selected += (rng.random(60) < rate).astype(int).tolist()
        stratum += [str(place)] * 60
    return People("strata", group, selected, stratum)


KINDS = (_even, _skewed, _tiny, _quotas, _lost_at_random, _lost_by_group, _ties, _strata)


def without_bias(count: int, seed: int = 0) -> Iterator[People]:
    """Give so many tables in which the group says nothing of the outcome, of all kinds in turn."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        yield KINDS[number % len(KINDS)](rng).shuffled(rng)


def _detectable(sizes: Sequence[int], rate: float) -> float:
    """The ratio of the second group that a page of these sizes calls detectable."""
    people = np.array(sizes)
    found = judged_counts(people, np.rint(rate * people).astype(np.int64), 1000)
    contrast = found.groupings[0].tested[1].contrast
    assert contrast is not None
    assert contrast.detectable is not None
    return contrast.detectable


def with_bias(count: int, times: float = 2.0, seed: int = 0) -> Iterator[People]:
    """Give so many tables in which the second group is behind by `times` the smallest effect that a
    page without bias, of the same sizes and rate, calls detectable."""
    rng = np.random.default_rng(seed)
    designs = [(sizes, rate) for sizes in ((300, 300), (400,) * 4, (800, 200, 100), (1500, 300, 20))
               for rate in (0.3, 0.5)]  # fmt: skip
    least = [_detectable(sizes, rate) for sizes, rate in designs]
    for number in range(count):
        sizes, rate = designs[number % len(designs)]
        rates = np.full(len(sizes), rate)
        rates[1] *= max(0.0, 1 - times * (1 - least[number % len(designs)]))
        chosen = rng.binomial(sizes, rates)
        cells = [(f"g{n}", size, int(x))
                 for n, (size, x) in enumerate(zip(sizes, chosen, strict=True))]  # fmt: skip
        yield counted_people("one group behind", cells).shuffled(rng)
