"""How often a 95 % interval holds the truth, and on which side it misses it.

    EVENHAND_DATA=… python -m bench.simulated.coverage 25                    # half an hour
    EVENHAND_DATA=… python -m bench.simulated.coverage 25 --of by_records    # these numbers alone

Runs of 11, 13, 25 and 343 templates are drawn from a population whose numbers are known, and every
endpoint of a report and of a comparison is computed by the code that prints it.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import polars as pl

from bench.simulated.population import BBQ, Population, outcomes, run_of, totals_of
from evenhand.findings.paired_totals import PairTotals
from evenhand.instruments import Instrument
from evenhand.statistics.clusters import of_means
from evenhand.statistics.metrics.likelihood import icat

TEMPLATES = (11, 13, 25, 343)
# What is drawn: a run, or two over the same items. In "rare" 0.5 % of unclear questions get a name.
RUNS = {
    "race": (("race", 0.0, 1.0),),
    "arc": (("arc", 0.0, 1.0),),
    "rare": (("race", 0.0, 0.0125),),
    "race to arc": (("race", 0.0, 1.0), ("arc", 0.0, 1.0)),
    "race to its noisy twin": (("race", 0.0, 1.0), ("race", 0.05, 1.0)),
}
Ends = tuple[float, float]


def figures(*, short: bool, at: Sequence[int] = TEMPLATES, of: str = "") -> dict[str, float]:
    """The least and the largest coverage and the worst tail, at each number of templates and over
    all of them, of the measures whose name has `of` in it; and the coverage of ICAT for a model
    without bias."""
    population = Population.of_bbq()
    kept = tuple(measure for measure in BBQ.measures if of in measure.name)
    bbq: Instrument = type("Part", (type(BBQ),), {"measures": kept})()
    found: dict[str, float] = {}
    for templates in (11,) if short else at:
        draws = 60 if short else 1_000
        misses = {name: _misses(bbq, population, name, templates, draws) for name in RUNS}
        every = [(*miss, f"{name}: {m}") for name, by in misses.items() for m, miss in by.items()]
        covered = [1 - below - above for below, above, _ in every]
        tail, where = max((max(below, above), name) for below, above, name in every)
        found |= {
            f"coverage_min at {templates}": min(covered),
            f"coverage_max at {templates}": max(covered),
            f"worst_tail at {templates}": tail,
        }
        print(f"{templates} templates, {draws:,} draws: the worst tail is of {where}", flush=True)
        for below, above, one in () if short else every:
            print(f"  {1 - below - above:6.1%} {below:6.1%} {above:6.1%}  {one}", flush=True)
    for name, best in (("coverage_min", min), ("coverage_max", max), ("worst_tail", max)):
        found[name] = best(value for key, value in found.items() if key.startswith(f"{name} at"))
    for terms in (79,) if short else () if of else (79, 10, 3):
        found[f"icat at {terms} terms"] = _icat(terms, 100 if short else 1_000)
    return found


def _misses(
    bbq: Instrument, population: Population, name: str, templates: int, draws: int
) -> dict[str, Ends]:
    """Of each measure how often the truth lies below its interval, and how often above."""
    frames = [outcomes(*answers) for answers in RUNS[name]]
    whole = population.whole()
    truth = _found(bbq, tuple(run_of(frame, whole) for frame in frames))
    rng = np.random.default_rng([templates, *name.encode()])
    below, above, seen = ({measure: 0 for measure in truth} for _ in range(3))
    for _ in range(draws):
        drawn = population.draw(templates, rng)
        found = _found(bbq, tuple(run_of(f, drawn) for f in frames))
        for measure, (_, low, high) in found.items():
            if low is None or high is None:
                continue
            true = truth[measure][0]
            below[measure] += true < low
            above[measure] += true > high
            seen[measure] += 1
    return {m: (below[m] / seen[m], above[m] / seen[m]) for m in truth if seen[m]}


def _found(
    bbq: Instrument, runs: tuple[pl.DataFrame, ...]
) -> dict[str, tuple[float, float | None, float | None]]:
    """Value and ends of every measure that has a value."""
    totals = totals_of(bbq, runs)
    found = {}
    for measure in bbq.measures:
        if isinstance(totals, PairTotals):
            change = totals.change(measure)
            one = change.effect, change.low, change.high
        else:
            estimate = totals.estimate(measure)
            one = estimate.value, estimate.low, estimate.high
        value, low, high = one
        if value is not None:
            found[measure.name] = value, low, high
    return found


def _icat(terms: int, draws: int) -> float:
    """The coverage of ICAT for a model without bias: a score of 90, and a preference of 50 around
    which terms differ by 10."""
    rng, hits = np.random.default_rng(terms), 0
    for _ in range(draws):
        chances = np.clip(rng.normal(0.5, 0.1, terms), 0.02, 0.98)
        scores = rng.binomial(40, 0.9, terms) / 40, rng.binomial(20, chances) / 20
        found = of_means(
            100 * np.column_stack(scores), lambda m: np.asarray(icat(m[:, 0], m[:, 1]))
        )
        hits += found.low <= 90 <= found.high
    return hits / draws


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("at", type=int, nargs="+", metavar="TEMPLATES")
    parser.add_argument("--of", default="", help="only measures with this in their name")
    for key, value in figures(short=False, **vars(parser.parse_args())).items():
        print(f"{key:40} {value:.3f}")
