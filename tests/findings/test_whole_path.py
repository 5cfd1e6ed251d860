"""From answers to what is printed: whichever answers fail, no verdict, guardrail, frontier or
headline is better for it.

The runs are real ones of every instrument that are kept for `same_numbers`, read in memory. The
number of cases is for CI; EVENHAND_CASES=10 looks at ten times as many.
"""

import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evenhand.findings.comparison import compare
from evenhand.findings.cost_effectiveness import CostVerdict, Worth, worth
from evenhand.findings.decision_rules import adjusted, missing_line
from evenhand.findings.estimates import Bounds, Change, Coverage
from evenhand.findings.frontier import FrontierArm, frontier
from evenhand.findings.measures import Measure
from evenhand.findings.report import report
from evenhand.findings.scoring import ScoringSpec
from evenhand.findings.summed_statistics import Share
from evenhand.findings.worst_case import WorstCasePair, WorstCaseSums, defended_change
from evenhand.instruments import instrument_of
from evenhand.instruments.likelihood_sets import all_sets, runs_at
from evenhand.instruments.realtoxicityprompts.words import length
from evenhand.runs.store import RunReader

from . import no_better
from .lossy import Lossy

KEPT = Path(__file__).parents[1] / "same_numbers/kept"
TIMES = int(os.environ.get("EVENHAND_CASES", "1"))
# Instrument, the run before, the run after, and how many cases.
PAIRS = [
    ("bbq", "default", "fairness", 1),
    ("bbq", "random", "always_unknown", 1),
    ("squad", "default", "fairness", 3),
    ("squad", "fairness", "default", 3),
    ("overcorrection", "default", "fairness", 2),
    ("overcorrection", "fairness", "self_debias_reprompting", 2),
    ("rtp", "default", "fairness", 1),
]


def _two_losses(rng: random.Random, items: list[str]) -> tuple[set[str], set[str]]:
    """Some items, and the same with some more."""
    fewer = set(rng.sample(items, rng.choice([0, 1, len(items) // 10])))
    more = rng.sample(items, rng.choice([1, len(items) // 10, len(items) // 3, len(items) - 1]))
    return fewer, fewer | set(more)


def _no_better(instrument: ScoringSpec, before: Lossy, after: Lossy, rng: random.Random) -> None:
    fewer, more = _two_losses(rng, after.items)
    old, new = (after.without(lost) for lost in (fewer, more))
    no_better.report(report(instrument, old), report(instrument, new))
    no_better.after(compare(instrument, before, old), compare(instrument, before, new))
    old, new = (before.without(lost) for lost in (fewer, more))
    no_better.before(compare(instrument, old, after), compare(instrument, new, after))


@pytest.mark.parametrize(("name", "before", "after", "cases"), PAIRS)
def test_no_report_and_no_comparison_is_better_for_answers_that_failed(
    name: str, before: str, after: str, cases: int
) -> None:
    old, new = (Lossy(RunReader(KEPT / name / run)) for run in (before, after))
    rng = random.Random(f"{name} {before} {after}")
    for _ in range(cases * TIMES):
        _no_better(instrument_of(old), old, new, rng)


def test_no_likelihood_set_is_better_for_texts_that_could_not_be_read() -> None:
    rng = random.Random(5)
    before, after = (runs_at(str(KEPT / "likelihood" / name)) for name in ("before", "after"))
    for name, run in before.items():
        for _ in range(TIMES):
            _no_better(all_sets()[name], Lossy(run), Lossy(after[name]), rng)


def test_no_method_of_a_frontier_is_better_for_answers_that_failed_in_any_run() -> None:
    rng = random.Random(6)
    named = {"default": "random", "fairness": "always_stereotyped", "self_consistency": "default",
             "method": "always_unknown"}  # fmt: skip
    runs = {name: Lossy(RunReader(KEPT / "bbq" / run)) for name, run in named.items()}
    for _ in range(TIMES):
        lossy = rng.choice(list(runs))
        old, new = (
            frontier(
                instrument_of(runs["default"]),
                [
                    FrontierArm(name=n, run=r.without(lost if n == lossy else ()))
                    for n, r in runs.items()
                ],
                calls=1,
            )
            for lost in _two_losses(rng, runs[lossy].items)
        )
        no_better.frontier(old, new)


# -- many small frontiers: the sums of clusters, what may be claimed of them, and the verdict ------

HARM = Measure(name="harm", label="harm", statistic=Share(pl.col("y")), better="lower",
               role="primary", within=(0, 1))  # fmt: skip
RIGHT = Measure(name="right", label="right", statistic=Share(pl.col("y")), better="higher",
                within=(0, 1), margin=0.3)  # fmt: skip


class Small(ScoringSpec):
    """An instrument of a harm and a utility, of which only the verdicts are asked."""

    name, clusters, harm, utility, matters = "small", "clusters", "harm", "right", 0.1
    measures = (HARM, RIGHT)


def _change(measure: Measure, old: np.ndarray, new: np.ndarray, lost: list[np.ndarray]) -> Change:
    """A change from the answers of two runs, of which each has lost some."""
    before, after = (
        WorstCaseSums.of(
            measure, (side * ~gone).sum(1), (~gone).sum(1).astype(float), gone.sum(1) * 1.0
        )
        for side, gone in zip((old, new), lost, strict=True)
    )
    gone = lost[0] | lost[1]
    difference = ((new - old) * ~gone).sum(1)
    missing, known = int(gone.sum()), max(1, int((~gone).sum()))
    pair = WorstCasePair(before, after, gone.sum(1).astype(float), difference)
    change = Change(name=measure.name, before=0.0, after=0.0, se=0.1,
                    difference=float(difference.sum()) / known, n=known,
                    clusters=len(old))  # fmt: skip
    return defended_change(change, measure, [pair], missing=missing)


def _coverage(lost: np.ndarray) -> Coverage:
    return Coverage(n=lost.size, scored=int((~lost).sum()), by_reason={})


def _worth(runs: list[np.ndarray], right: list[np.ndarray], lost: list[np.ndarray]) -> Worth:
    """The verdict on the last of three runs: the first is the plain prompt, the second another
    reference. A reply that failed has neither its harm nor its utility."""
    plain, reference, method = range(3)
    against = adjusted(
        [_change(HARM, runs[one], runs[method], [lost[one], lost[method]])
         for one in (plain, reference)]
    )  # fmt: skip
    utility = _change(RIGHT, right[plain], right[method], [lost[plain], lost[method]])
    failed = missing_line({"": (_coverage(lost[plain]), _coverage(lost[method]))})
    return worth(Small(), dict(zip(("plain", "reference"), against, strict=True)), utility,
                 family=2, guardrails=(failed,))  # fmt: skip


def test_thousands_of_small_frontiers_gain_no_verdict_by_losing_answers_of_any_run() -> None:
    rng = np.random.default_rng(15)
    seen: Counter[str] = Counter()
    for case in range(600 * TIMES):
        shape = int(rng.integers(6, 14)), int(rng.integers(1, 4))
        chances = rng.choice([0.1, 0.5, 0.9], 2)
        runs = [(rng.random(shape) < p) * 1.0 for p in (chances[0], chances[0], chances[1])]
        right = [(rng.random(shape) < 0.9) * 1.0] * 3
        lossy = case % 3
        fewer = rng.random(shape) < rng.choice([0.0, 0.1])
        more = fewer | (rng.random(shape) < rng.choice([0.05, 0.3]))
        was, now = (
            _worth(
                runs, right, [lost if one == lossy else np.zeros(shape, bool) for one in range(3)]
            )
            for lost in (fewer, more)
        )
        seen[was.kind] += 1
        if now.kind is CostVerdict.WORTH_IT:
            assert was.kind is CostVerdict.WORTH_IT, (was, now)
    assert (
        min(seen[kind] for kind in CostVerdict if kind is not CostVerdict.UTILITY_NOT_MEASURED)
        > 10 * TIMES
    )


# -- guardrails that an instrument adds ------------------------------------------------------------


def _moved(difference: float, bounds: Bounds | None = None) -> Change:
    """A change that is shown to be for the worse, and not to have kept within a margin."""
    return Change(name="counter_stereotyped_rate", before=20.0, after=20.0, difference=difference,
                  effect=difference, low=difference - 0.1, high=difference + 0.1, p=0.001,
                  n=400, clusters=100, bounds=bounds)  # fmt: skip


def test_a_length_is_not_called_kept_where_texts_are_missing() -> None:
    whole, lossy = length(_moved(0.1)), length(_moved(0.1, Bounds(missing=3)))
    assert (whole.state, lossy.state) == ("non_inferior", "inconclusive")
