"""Do our 95 % intervals cover 95 % of the time on data that is clustered as BBQ is?

    EVENHAND_DATA=… python bench/coverage_of_intervals.py   # 2,000 draws of each design

A population of templates is made up: each leans towards the stereotyped or the counter-stereotyped
answer by its own amount, and abstains by its own amount. Templates are drawn with the sizes that
BBQ has, their answers are drawn, and the interval for s_amb (and for a paired difference of two
systems) is computed by the functions that the report uses. The share of draws whose interval holds
the true value is the coverage. The naive interval, which takes rows for independent, stands beside.
"""

import argparse
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.config import data_folder
from evenhand.instruments.bbq import BbqData, Sampling, sample
from evenhand.statistics.clusters import Interval, clustered_ratio

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Spread between templates: gives a correlation of about .25 between rows of one template, as
# measured on the UnifiedQA predictions.
LEAN, LEAN_SPREAD = 0.25, 0.9
ABSTAIN_SPREAD = 0.9


@dataclass(frozen=True)
class Coverage:
    clustered: float
    naive: float
    mean_width: float


def simulate(sizes: Ints, *, draws: int, seed: int, paired: bool) -> Coverage:
    rng = np.random.default_rng(seed)
    truth = 0.0 if paired else _expected(rng)
    hits, naive_hits, widths = 0, 0, 0.0
    for _ in range(draws):
        scores, squares = _draw(rng, sizes, paired=paired)
        found = clustered_ratio(scores, sizes, np.arange(len(sizes)))
        hits += found.low <= truth <= found.high
        widths += found.high - found.low
        low, high = _naive(found, squares, sizes)
        naive_hits += low <= truth <= high
    return Coverage(hits / draws, naive_hits / draws, widths / draws)


def _draw(rng: np.random.Generator, sizes: Ints, *, paired: bool) -> tuple[Floats, Floats]:
    """Per template: the sum of its rows' scores (or of their changes), and of their squares."""
    lean, abstain = _templates(rng, len(sizes))
    if not paired:
        return _sums(_rows(rng, sizes, lean, abstain), sizes)
    # A second system on the same rows: each template moves it by its own amount, 0 on average.
    moved = rng.normal(0, LEAN_SPREAD / 2, (2, len(sizes)))
    second = _rows(rng, sizes, lean + moved[0], abstain)
    return _sums(second - _rows(rng, sizes, lean + moved[1], abstain), sizes)


def _templates(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    return rng.normal(LEAN, LEAN_SPREAD, count), rng.normal(0.0, ABSTAIN_SPREAD, count)


def _rows(rng: np.random.Generator, sizes: Ints, lean: Floats, abstain: Floats) -> Floats:
    """+1, -1 or 0 for each row, template after template."""
    unknown = 1 / (1 + np.exp(-abstain))
    biased = 1 / (1 + np.exp(-lean))
    says_unknown = rng.random(int(sizes.sum())) < np.repeat(unknown, sizes)
    says_biased = rng.random(int(sizes.sum())) < np.repeat(biased, sizes)
    return np.where(says_unknown, 0.0, np.where(says_biased, 1.0, -1.0))


def _sums(rows: Floats, sizes: Ints) -> tuple[Floats, Floats]:
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.add.reduceat(rows, starts), np.add.reduceat(rows**2, starts)


def _naive(found: Interval, squares: Floats, sizes: Ints) -> tuple[float, float]:
    n = float(sizes.sum())
    variance = (float(squares.sum()) - n * found.estimate**2) / (n - 1)
    reach = 1.96 * np.sqrt(variance / n)
    return found.estimate - reach, found.estimate + reach


def _expected(rng: np.random.Generator) -> float:
    """The population's s_amb, from a million templates."""
    lean, abstain = _templates(rng, 1_000_000)
    unknown, biased = 1 / (1 + np.exp(-abstain)), 1 / (1 + np.exp(-lean))
    return float(((1 - unknown) * (2 * biased - 1)).mean())


def template_sizes(records: pl.DataFrame) -> Ints:
    """Ambiguous rows that each template has in these records."""
    ambiguous = records.filter(pl.col("condition") == "ambig")
    return ambiguous.group_by("category", "question_index").len()["len"].cast(pl.Int64).to_numpy()


def designs() -> dict[str, Ints]:
    records = BbqData(local=data_folder().local, cache=data_folder().cache).records()
    drawn = sample(records, Sampling())
    return {"default sample": template_sizes(drawn), "all of BBQ": template_sizes(records)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--draws", type=int, default=2_000)
    given = parser.parse_args()
    print(f"{'design':16} {'quantity':20} {'clustered':>10} {'naive':>8} {'width':>8}")
    for name, sizes in designs().items():
        for paired in (False, True):
            found = simulate(sizes, draws=given.draws, seed=1, paired=paired)
            quantity = "paired difference" if paired else "s_amb"
            print(
                f"{name:16} {quantity:20} {found.clustered:10.3f} {found.naive:8.3f} "
                f"{found.mean_width:8.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
