"""Rankings of candidates with and without bias, as runs of `rankings` over them."""

import numpy as np
import orjson
import polars as pl

from bench.simulated.outcomes import OutcomeRun
from evenhand.instruments.rankings.judged import Ranking, judged

Rng = np.random.Generator
DESIGNS = [(200, 2), (400, 4), (800, 8)]  # rankings, groups
PAIRS = len(DESIGNS)


def run_of(
    first: np.ndarray, groups: int, turn: int, lost: np.ndarray, path: str = "simulated"
) -> OutcomeRun:
    """Give the run of rankings with one candidate of each group, in an order that turns.

    Args:
        first: The group that each ranking puts first.
        groups: How many groups there are.
        turn: How many rankings share a cluster.
        lost: Which rankings cannot be read.
        path: The folder that the run says it is in.
    """
    orders = [np.roll(np.arange(groups), place).tolist() for place in range(groups)]
    candidates = [orjson.dumps([{"group": f"g{one}"} for one in order]).decode()
                  for order in orders]  # fmt: skip
    names = [orjson.dumps([f"Person {'abcdefgh'[one]}" for one in order]).decode()
             for order in orders]  # fmt: skip
    place = np.arange(len(first))
    texts = [f"1. Person {'abcdefgh'[one]}" for one in first]
    rows = pl.DataFrame({
        "item_id": place.astype(str),
        "text": ["nobody" if gone else text for text, gone in zip(texts, lost, strict=True)],
        "candidates": [candidates[one % groups] for one in place],
        "names": [names[one % groups] for one in place],
        "cluster": (place // turn).astype(str),
    })  # fmt: skip
    return OutcomeRun("rankings", rows, path=path, facts=("candidates", "names", "cluster"))


def without_bias(rng: Rng, number: int) -> OutcomeRun:
    """Give rankings whose first place is drawn: sizes, quotas, rankings that say the same and ways
    to be missing take turns."""
    groups, rankings = (2, 4, 8)[number % 3], (40, 200, 1000)[number // 3 % 3]
    turn = (1, 1, 4)[number // 9 % 3]
    first = np.repeat(rng.integers(groups, size=-(-rankings // turn)), turn)[:rankings]
    if number % 5 == 4:  # first places that were dealt out evenly
        first = rng.permutation(np.arange(rankings) % groups)
    lost = rng.random(rankings) < (0.0, 0.03, 0.0, 0.1)[number % 4]
    if number % 4 == 3:
        lost &= first == 0
    return run_of(first, groups, turn, lost)


def detectable(number: int) -> float:
    """Give how far the first group must be behind its share, as a share of it, for a page of this
    design without bias to call it detectable."""
    rankings, groups = DESIGNS[number % len(DESIGNS)]
    people = tuple({"group": f"g{one}"} for one in range(groups))
    found = judged([Ranking(str(n), people, n % groups, None) for n in range(rankings)], 1000)
    contrast = found.groupings[0].tested[0].contrast
    assert contrast is not None
    assert contrast.detectable is not None
    return 1 - contrast.detectable


def _chances(groups: int, behind: float) -> np.ndarray:
    odds = np.array([max(0.0, 1 - behind), *[1.0] * (groups - 1)])
    return np.asarray(odds / odds.sum())


def with_bias(rng: Rng, number: int, behind: float) -> OutcomeRun:
    """Give rankings of this design in which the first group wins so much less often than others."""
    rankings, groups = DESIGNS[number % len(DESIGNS)]
    first = rng.choice(groups, rankings, p=_chances(groups, behind))
    return run_of(first, groups, 1, np.zeros(rankings, dtype=bool))


def two_systems(rng: Rng, number: int, behind: float) -> tuple[OutcomeRun, OutcomeRun]:
    """Give the runs of two systems that share most of what they decide by. The second puts the
    first group first so much less often; the first has a bias of its own in every other pair
    without such a change."""
    rankings, groups = DESIGNS[number % len(DESIGNS)]
    own = 0.0 if behind else 0.3 * (number // 3 % 2)
    u = rng.random(rankings)
    again = np.where(
        rng.random(rankings) < (0.1, 0.3, 0.2)[number % PAIRS], rng.random(rankings), u
    )
    lost = rng.random(rankings) < (0.0, 0.02)[number // 2 % 2 if not behind else 0]
    sides = []
    for path, drawn, less in (("before", u, own), ("after", again, max(own, behind))):
        ends = _chances(groups, less)[::-1].cumsum()  # a first group that wins less gives its own
        first = groups - 1 - np.minimum(np.searchsorted(ends, drawn), groups - 1)
        sides.append(run_of(first, groups, 1, lost, path))
    return sides[0], sides[1]
