"""People who were decided on with and without bias: tables, and runs of `decisions` over them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import polars as pl

from bench.simulated.outcomes import OutcomeRun
from evenhand.findings.ratios import GroupResults
from evenhand.instruments.decisions.judged import judged
from evenhand.statistics._shared import IntArray


def judged_counts(people: IntArray, selected: IntArray, draws: int | None = None) -> GroupResults:
    """Judge groups of which only the numbers are known, all outcomes among them."""
    table = pl.DataFrame({
        "stratum": [""] * len(people),
        "group": [orjson.dumps([f"{index:02}"]).decode() for index in range(len(people))],
        "people": people, "read": people, "selected": selected,
    })  # fmt: skip
    return judged(table, ["group"], draws=draws)


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
    return _lost(_even(rng), "missing at random", lambda _: 0.04, rng)


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
DESIGNS = [(sizes, rate) for sizes in ((300, 300), (400,) * 4, (800, 200, 100), (1500, 300, 20))
           for rate in (0.3, 0.5)]  # fmt: skip
PAIRS = 4  # the first so many designs are compared


def without_bias(rng: np.random.Generator, number: int) -> People:
    """Give a table in which the group says nothing of the outcome; all kinds take turns."""
    return KINDS[number % len(KINDS)](rng).shuffled(rng)


def detectable(number: int) -> float:
    """Give how far the second group must be behind, as a share of its rate, for a page of this
    design without bias to call it detectable."""
    sizes, rate = DESIGNS[number % len(DESIGNS)]
    people = np.array(sizes)
    found = judged_counts(people, np.rint(rate * people).astype(np.int64), 1000)
    contrast = found.groupings[0].tested[1].contrast
    assert contrast is not None
    assert contrast.detectable is not None
    return 1 - contrast.detectable


def with_bias(rng: np.random.Generator, number: int, behind: float) -> People:
    """Give a table of this design in which the rate of the second group is so much lower."""
    sizes, rate = DESIGNS[number % len(DESIGNS)]
    rates = np.full(len(sizes), rate)
    rates[1] *= max(0.0, 1 - behind)
    chosen = rng.binomial(sizes, rates)
    cells = [(f"g{n}", size, int(x))
             for n, (size, x) in enumerate(zip(sizes, chosen, strict=True))]  # fmt: skip
    return counted_people("one group behind", cells).shuffled(rng)


def run_of(people: People, path: str = "simulated") -> OutcomeRun:
    """Give the run that `measure decisions` makes of these people."""
    said = ["" if one is None else str(one) for one in people.selected]
    rows = pl.DataFrame({
        "item_id": [str(place) for place in range(len(said))],
        "text": said,
        "group": [f'["{one}"]' for one in people.group],
        "stratum": people.stratum or [""] * len(said),
        "decided": said,
    })  # fmt: skip
    sampling = {"groups": ["group"], "cluster": None}
    return OutcomeRun("decisions", rows, path=path, facts=("group", "stratum", "decided"),
                      source={"sampling": sampling, "preset": None, "leave_out_small": False,
                              "read_as": None, "median": None})  # fmt: skip


def two_systems(
    rng: np.random.Generator, number: int, behind: float
) -> tuple[OutcomeRun, OutcomeRun]:
    """Give two runs over the same people, decided by systems that share most of what they decide
    by. The second system is so much harder on the second group; the first has a bias of its own in
    every other pair without such a change."""
    sizes, rate = DESIGNS[number % PAIRS]
    group = np.repeat(np.arange(len(sizes)), sizes)
    rates = np.full(len(group), rate)
    if not behind and number // PAIRS % 2:
        rates[group == 0] *= 0.7
    u = rng.random(len(group))
    again = np.where(rng.random(len(u)) < (0.1, 0.3)[number % 2], rng.random(len(u)), u)
    harder = np.where(group == 1, rates * max(0.0, 1 - behind), rates)
    order = rng.permutation(len(group))
    lost = rng.random(len(group)) < (0.0, 0.02)[number // 2 % 2 if not behind else 0]
    sides = []
    for path, chosen in (("before", u < rates), ("after", again < harder)):
        selected = [None if lost[n] else int(chosen[n]) for n in order]
        sides.append(run_of(People("two", [f"g{group[n]}" for n in order], selected), path))
    return sides[0], sides[1]
