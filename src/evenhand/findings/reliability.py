"""A study of reliability says how much of a score is the system and the item, and how much is the
order of options, the wording of the prompt, and the seed (a generalizability study)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.errors import Undefined, UserError
from evenhand.findings.comparison import same_sample
from evenhand.findings.conditions import ORDER, SEED, WORDING, conditions, require_distinct, system
from evenhand.findings.decision_rules import ALPHA
from evenhand.findings.dependability import (
    ITEM,
    LEAST,
    CrossedDesign,
    Dependability,
    VarianceComponent,
    of_measure,
    values_by_run,
)
from evenhand.findings.display import Displayable, Remark
from evenhand.findings.estimates import NO_VERDICT, Estimate, Verdict
from evenhand.findings.measures import Measure
from evenhand.findings.report import require
from evenhand.findings.scoring import SCORED, ScoringSpec, outcomes_of, row_values
from evenhand.findings.summed_statistics import Share
from evenhand.findings.totals import RunTotals
from evenhand.runs.store import RunReader
from evenhand.statistics._shared import FloatArray
from evenhand.statistics.sign_flips import p_of_columns, p_two_sided

SYSTEM, RUN = "system", "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPair:
    """Two systems, by the mean of a measure over their runs."""

    first: str
    second: str
    difference: float  # the first minus the second, each from "no bias" where there is such a value
    low: float | None  # ends that hold for all pairs together; None: unbounded
    high: float | None
    p_adjusted: float  # after Bonferroni; of being better, not only of being different
    better: str | None  # the one that is shown to be better; None where they are not told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One of the runs of a study: its system, its conditions, and its estimates."""

    run: str
    system: str
    conditions: Mapping[str, Any]
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability(Displayable):
    """A study of reliability over several runs of the same items.

    >>> found = evenhand.stability(["runs/o0", "runs/o1", "runs/o2"])
    >>> found.verdict, found["s_amb"].one_run, found.agreement
    """

    instrument: ScoringSpec
    of: str  # the object that scores should tell apart: "item", or "system" if there are several
    sizes: Mapping[str, int]  # facet -> its levels
    crossed: bool  # False: order, wording and seed cannot be told apart
    runs: tuple[StudyRun, ...]
    measures: tuple[Dependability, ...]
    agreement: tuple[Estimate, ...]  # the same option again, by the one condition that changed
    pairs: tuple[SystemPair, ...]  # each two systems, by the first measure; empty where Φ refuses
    verdict: Verdict = NO_VERDICT

    def __getitem__(self, name: str) -> Dependability:
        """Give what was found of a measure, by its name."""
        return next(result for result in self.measures if result.measure == name)

    def frame(self) -> pl.DataFrame:
        """Give one row per measure and effect: variance, share, and whether it was below 0."""
        return pl.DataFrame(
            [
                {
                    "measure": result.measure,
                    **{f: getattr(p, f) for f in VarianceComponent.__dataclass_fields__},
                }
                for result in self.measures
                for p in result.parts
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.instrument.name,
            "verdict": self.verdict,
            "of": self.of,
            "facets": dict(self.sizes),
            "fully_crossed": self.crossed,
            "runs": self.runs,
            "dependability": self.measures,
            "same_option": self.agreement,
            "pairs": self.pairs,
        }


def reliability(instrument: ScoringSpec, runs: Sequence[RunReader]) -> Reliability:
    """Split the variance of these runs' scores, and say whether anything may be ranked by them."""
    if len(runs) < 2:
        raise UserError(
            "one run cannot say how reliable it is; give two or more over the same items, such as "
            f"`evenhand measure {instrument.name} … --order-seed 1 --out runs/order1`"
        )
    for run in runs:
        require(instrument, run)
        same_sample(runs[0], run)
    require_distinct(runs)
    facets, crossed = _facets(runs)
    of = SYSTEM if SYSTEM in facets.levels else ITEM
    outcomes = [outcomes_of(instrument, run) for run in runs]
    measured = [m for m in instrument.primary() if m.statistic.is_mean]
    if not measured:
        raise UserError(
            f"{instrument.name} has no primary metric that is a mean over items, so its stability "
            "cannot be estimated. Use another benchmark."
        )
    results = [of_measure(instrument, m, outcomes, facets, of) for m in measured]
    every = tuple(
        StudyRun(
            run=str(run.path),
            system=system(run.record),
            conditions=conditions(run.record),
            estimates=tuple(map(RunTotals.of(instrument, [rows]).estimate, measured)),
        )
        for run, rows in zip(runs, outcomes, strict=True)
    )
    study = Reliability(
        instrument=instrument,
        of=of,
        sizes=facets.sizes,
        crossed=crossed,
        runs=every,
        measures=tuple(results),
        agreement=_agreement(instrument, runs, outcomes),
        pairs=(),
    )
    if of == SYSTEM and results[0].shown:
        names = [run.system for run in every]
        study = replace(study, pairs=_pairs(instrument, measured[0], outcomes, names))
    return replace(study, verdict=_verdict(study))


def _levels(runs: Sequence[RunReader]) -> dict[str, list[Any]]:
    """Give system, order, wording and seed of each run. A run that repeats all of them is a further
    seed: without one, a model draws a new sample."""
    levels: dict[str, list[Any]] = {SYSTEM: [], ORDER: [], WORDING: [], SEED: []}
    settings: list[tuple[Any, ...]] = []
    for run in runs:
        setting = (system(run.record), *conditions(run.record).values())
        again = settings.count(setting)
        settings.append(setting)
        for facet, level in zip(levels, (*setting[:-1], (setting[-1], again)), strict=True):
            levels[facet].append(level)
    return levels


def _facets(runs: Sequence[RunReader]) -> tuple[CrossedDesign, bool]:
    """Give the crossed design of the runs; where order, wording and seed are not crossed, they are
    one facet together."""
    levels = _levels(runs)
    try:
        return CrossedDesign.of(levels), True
    except Undefined:
        together = list(zip(levels[ORDER], levels[WORDING], levels[SEED], strict=True))
    try:
        return CrossedDesign.of({SYSTEM: levels[SYSTEM], RUN: together}), False
    except Undefined:
        raise UserError(
            "the systems were not run under the same conditions: give each of them a run with the "
            "same --order-seed, --wording and --seed as the others have"
        ) from None


class _SameOption(ScoringSpec):
    """Whether two runs that differ in one condition gave the same option, as a share of items."""

    name = "same_option"
    title = "the same option again"
    clusters = "clusters"
    columns = ()
    measures = tuple(
        Measure(name=facet, label=facet, statistic=Share(pl.col(facet)), within=(0, 1))
        for facet in (SEED, ORDER, WORDING)
    )


def _agreement(
    instrument: ScoringSpec, runs: Sequence[RunReader], outcomes: Sequence[pl.DataFrame]
) -> tuple[Estimate, ...]:
    """Estimate how often the same option is given again where one condition alone changed. A
    missing answer agrees with none."""
    if "choice" not in instrument.columns:
        return ()
    levels = _levels(runs)
    rows = row_values(outcomes[0], instrument).select("item_id", "cluster", "masked")
    for index, run in enumerate(runs):
        answers = run.results().select("item_id", pl.col("text").alias(f"text{index}")).collect()
        rows = rows.join(answers, on="item_id", how="left", maintain_order="left")
    same: dict[str, list[pl.Expr]] = {facet: [] for facet in (SEED, ORDER, WORDING)}
    for first, other in combinations(range(len(runs)), 2):
        apart = [facet for facet, values in levels.items() if values[first] != values[other]]
        if len(apart) == 1 and apart[0] in same:
            equal = pl.col(f"text{first}") == pl.col(f"text{other}")
            same[apart[0]].append(equal.fill_null(False).cast(pl.Float64))
    rates = {facet: pl.mean_horizontal(pairs) for facet, pairs in same.items() if pairs}
    unseen = {f: pl.lit(None, pl.Float64) for f in same if f not in rates}
    frame = rows.with_columns(state=pl.lit(SCORED), **rates, **unseen)
    totals = RunTotals.of(_SameOption(), [frame])
    return tuple(totals.estimate(m) for m in _SameOption.measures if m.name in rates)


def _pairs(
    instrument: ScoringSpec,
    measure: Measure,
    outcomes: Sequence[pl.DataFrame],
    systems: Sequence[str],
) -> tuple[SystemPair, ...]:
    table = values_by_run(instrument, measure, outcomes)
    values = table.drop("item_id", "cluster").to_numpy().astype(np.float64)
    return told_apart(measure, values, table["cluster"].to_list(), systems)


def _verdict(study: Reliability) -> Verdict:
    """Say by the first measure whether Φ allows a comparison, and which systems are told apart."""
    main = study.measures[0]
    name = study.instrument.measure(main.measure).label
    objects = "systems" if study.of == SYSTEM else "items"
    if main.shown:
        line = Remark("phi.shown", phi=_phi(main), objects=objects, measure=name)
        if study.of != SYSTEM:
            return Verdict(state="detected", says=(line, *_notes(study)))
        any_better = any(pair.better for pair in study.pairs)
        pairs = (Remark("phi.systems"), *ranking(study.pairs, name))
        says = (line, *pairs, *_notes(study))
        return Verdict(state="detected" if any_better else "inconclusive", says=says)
    below = main.least.value is not None and main.least.value < LEAST
    why = Remark("phi.below" if below else "phi.not_shown", phi=_phi(main), measure=name)
    refused = Remark("phi.no_ranking", objects=objects)
    again = Remark("next.more_conditions", instrument=study.instrument.name)
    return Verdict(state="inconclusive", says=(why, refused, *_notes(study)), next=(again,))


def _phi(main: Dependability) -> Remark:
    phi = main.least
    return Remark("phi", value=phi.value, low=phi.low, high=phi.high, undefined=phi.undefined)


def _notes(study: Reliability) -> list[Remark]:
    remarks = []
    main = study.measures[0]
    if not study.crossed:
        remarks.append(Remark("phi.not_crossed"))
    if main.incomplete:
        remarks.append(Remark("phi.incomplete", items=main.incomplete))
    alone = main.one_run.value
    if study.of == ITEM and not main.shown and alone:
        remarks.append(Remark("phi.more_runs", runs=max(math.ceil((1 - alone) / alone), 1)))
    if study.of == SYSTEM and study.sizes[SYSTEM] == 2:
        remarks.append(Remark("phi.two_systems"))
    return remarks


_GRID, _ROUNDS = 33, 4  # our choice: an end of an interval to a millionth of what it may be


def told_apart(
    measure: Measure, values: FloatArray, clusters: Sequence[object], systems: Sequence[str]
) -> tuple[SystemPair, ...]:
    """Compare each two systems.

    Better is what is lower or higher, as the measure says; of a measure with a value for "no bias"
    it is what is nearer to that value. |a| − |b|, of distances a and b with |a| the larger, is the
    smaller one of a − b and a + b with the sign of a, and both have to be shown to lie above 0: the
    larger of the two p-values counts, and the lower of the two ends.

    Args:
        measure: What the values are of.
        values: One row per item, one column per run; none is missing.
        clusters: The cluster of each item.
        systems: The system of each run.

    Returns:
        One entry for each two systems, in their order.
    """
    names = list(dict.fromkeys(systems))
    _, cluster_index = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    sizes = np.bincount(cluster_index).astype(np.float64)
    means = {
        name: values[:, [system == name for system in systems]].mean(axis=1).astype(np.float64)
        for name in names
    }
    pairs = list(combinations(names, 2))

    def summed(rows: FloatArray) -> FloatArray:
        return np.bincount(cluster_index, rows).astype(np.float64)

    return tuple(
        _pair(measure, first, other, means, len(pairs), summed, sizes) for first, other in pairs
    )


def _pair(
    measure: Measure,
    first: str,
    other: str,
    means: Mapping[str, FloatArray],
    pairs: int,
    summed: Callable[[FloatArray], FloatArray],
    sizes: FloatArray,
) -> SystemPair:
    a, b = (summed(means[name] - (measure.null or 0.0)) for name in (first, other))
    claims, turn = [a - b], 1.0
    if measure.null is not None:
        turn = 1.0 if abs(a.sum()) >= abs(b.sum()) else -1.0
        far, near = (a, b) if turn > 0 else (b, a)
        sign = 1.0 if far.sum() >= 0 else -1.0
        claims = [sign * far - near, sign * far + near]
    adjusted = min(1.0, pairs * max(map(p_two_sided, claims)))
    difference = turn * min(float(sums.sum() / sizes.sum()) for sums in claims)
    ends = [_ends(sums, sizes, ALPHA / pairs) for sums in claims]
    low = None if any(end[0] is None for end in ends) else min(end[0] or 0.0 for end in ends)
    highs = [end[1] for end in ends if end[1] is not None]
    high = min(highs, default=None)
    if turn < 0:
        low, high = (None if end is None else -end for end in (high, low))
    is_first = (difference < 0) is (measure.better != "higher" or measure.null is not None)
    return SystemPair(
        first=first,
        second=other,
        difference=difference,
        low=low,
        high=high,
        p_adjusted=adjusted,
        better=(first if is_first else other) if adjusted <= ALPHA else None,
    )


def _ends(sums: FloatArray, sizes: FloatArray, level: float) -> tuple[float | None, float | None]:
    """The smallest and the largest difference that the test at this level does not refute."""
    middle = float(sums.sum() / sizes.sum())
    reach = float(np.ptp(sums / sizes)) + abs(middle) + 1.0

    def refuted(differences: FloatArray, sign: float) -> NDArray[np.bool_]:
        shifted = sign * (differences[None, :] * sizes[:, None] - sums[:, None])
        return np.asarray(2 * p_of_columns(shifted) <= level)

    limits: list[float | None] = []
    for sign in (-1.0, 1.0):
        inside, outside = middle, middle + sign * reach
        if not refuted(np.array([outside]), sign)[0]:
            limits.append(None)  # so few clusters refute nothing
            continue
        for _ in range(_ROUNDS):
            tried = np.linspace(inside, outside, _GRID)
            first = int(np.argmax(refuted(tried, sign)))  # the last of them is refuted
            inside, outside = float(tried[max(first - 1, 0)]), float(tried[first])
        limits.append(inside)
    return limits[0], limits[1]


def ranking(pairs: Sequence[SystemPair], label: str) -> list[Remark]:
    """Return who is better than whom, and of whom neither is shown to be better."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    beaten = {
        name: tuple(
            worse
            for worse in names
            for pair in pairs
            if pair.better == name and worse in (pair.first, pair.second) and worse != name
        )
        for name in names
    }
    remarks = [
        Remark(
            "systems.better",
            better=tuple(name for name in names if beaten[name] == worse),
            worse=worse,
            measure=label,
        )
        for worse in dict.fromkeys(beaten.values())
        if worse
    ]
    alike = [pair for pair in pairs if pair.better is None]
    return remarks + [
        Remark("systems.alike", first=pair.first, second=pair.second) for pair in alike
    ]
