"""How often audits without bias are called biased, and how often a planted bias is found.

    python -m bench.null_laboratory                    # or `make bench-null`: an hour
    python -m bench.null_laboratory --by path          # a quarter of it: cases in turn
    python -m bench.null_laboratory --null 40 --planted 20 --only compare

Every instrument and command that draws a conclusion is one case or several. Audits without bias go
through sizes, shapes of scores, orders and batches of rows, ties, repeats, and answers that are
missing at random and by group. A planted bias is twice as large as what a page of an audit without
bias states as its smallest detectable one.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from bench.gate import InMemory, checks, judged, two_runs
from bench.simulated import judge_audits, people, ranked, swap_answers
from bench.simulated.outcomes import (
    MISSING,
    SHAPES,
    Design,
    OutcomeRun,
    System,
    frame,
    read_alone,
)
from bench.simulated.scenarios import SureScorer, rate_from_few_labels, screen_looks
from evenhand.core.conclusions import Outcome
from evenhand.findings.comparison import Comparison, compare
from evenhand.findings.cost_effectiveness import CostVerdict, worth
from evenhand.findings.decision_rules import adjusted, smallest_shown
from evenhand.findings.estimates import Change
from evenhand.findings.frontier import Frontier, FrontierArm, frontier
from evenhand.findings.measures import Measure
from evenhand.findings.paired_totals import PairTotals
from evenhand.findings.reliability import told_apart
from evenhand.findings.report import Report, report
from evenhand.findings.scoring import SCORED, ScoringSpec
from evenhand.findings.sequential import SequentialPlan, stand
from evenhand.findings.summed_statistics import Mean
from evenhand.findings.totals import RunTotals
from evenhand.findings.verdicts import bias_measures
from evenhand.instruments import instrument_named
from evenhand.statistics.change_detection import watched
from evenhand.statistics.planning import detectable_change

RECORD = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[1] / "docs/validation.md"
BEGINS, ENDS = "<!-- measured -->", "<!-- as measured -->"  # what `--record` writes stands between
NULL, PLANTED = 400, 200
MOST_FALSE, LEAST_FOUND = 0.05, 0.8
_WRONG = 0.02  # of quick looks, where the share is either of the two that are told apart
Rng = np.random.Generator
# Draws the audit of this number with so large an effect, and says whether it is called biased.
Concludes = Callable[[Rng, int, float], bool]
# Says how large an effect the audit of this number states as its smallest detectable one.
Stated = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case is an instrument under a command. Cases of one path share statistics and code, and
    differ in their declarations alone: a quick look goes through them in turn."""

    command: str
    instrument: str
    path: str
    concludes: Concludes
    stated: Stated

    @property
    def name(self) -> str:
        return f"{self.command} {self.instrument}".strip()

    def false(self, rng: Rng, number: int) -> bool:
        """Say whether the audit of this number, without bias, is called biased."""
        return self.concludes(rng, number, 0.0)

    def found(self, rng: Rng, number: int) -> bool:
        """Say whether a bias of twice the stated size is found."""
        return self.concludes(rng, number, 2 * self.stated(number))


@dataclass(frozen=True, kw_only=True)
class Row:
    """The shares of one case, or of all cases of one path."""

    name: str
    null: int
    false: float
    planted: int
    found: float

    @property
    def holds(self) -> bool:
        """Whether at most 5 % are false and 80 % found, the first within two standard errors."""
        return self.false <= most_false(self.null) and self.found >= LEAST_FOUND


def most_false(audits: int) -> float:
    """Give the largest share that so many audits may have of what is seen in 5 % at most: two
    standard errors above it."""
    return MOST_FALSE + 2 * math.sqrt(MOST_FALSE * (1 - MOST_FALSE) / audits)


# -- measure: the verdict of one run --------------------------------------------------------------


SHARES = ("bbq", "crows_pairs", "winobias", "subtler_biases", "subtler_choices", "seegull",
          "redditbias", "political")  # fmt: skip
SUMS = ("framings", "gest")
MEANS_OF_CLUSTERS = ("stereoset",)


_DESIGNS = 2 * len(SHAPES)  # of planted audits: all shapes, with and without missing answers


def planted_design(number: int, clusters: int, name: str) -> Design:
    """Give the design of an audit with a planted bias: all shapes in turn. It has so many clusters
    that there is room for twice the stated bias; of a difference of shares each missing answer
    counts twice, and none is missing."""
    missing = "" if name in SUMS else MISSING[number % 2]
    return Design(clusters=clusters, shape=SHAPES[number % len(SHAPES)], missing=missing)


@cache
def _with_bias_scores(name: str, columns: tuple[str, ...]) -> ScoringSpec:
    instrument = instrument_named(name)
    scores = [m.name for m in instrument.primary() if m.null is not None]
    return read_alone(instrument, scores, columns)


def reported(name: str, rng: Rng, system: System) -> Report:
    """Give the report of a run of a system, with the scores that its verdict rests on."""
    rows = frame(name, rng, system.run(rng))
    return report(_with_bias_scores(name, tuple(rows.columns)), OutcomeRun(name, rows, rng))


@cache
def _slope(name: str, measure: str) -> float:
    """Give how much a measure moves with the mean lean of rows: it is linear in it."""
    rng, values = np.random.default_rng(1), []
    for bias in (0.0, 0.5):
        rows = frame(name, rng, System.drawn(rng, Design(clusters=2_000), bias).run(rng))
        alone = read_alone(instrument_named(name), [measure], rows.columns)
        value = RunTotals.of(alone, [rows]).estimate(alone.measure(measure)).value
        assert value is not None
        values.append(value)
    return abs(values[1] - values[0]) / 0.5


def _report_case(name: str, path: str) -> Case:
    clusters = 160 if name in SUMS else 40

    def concludes(rng: Rng, number: int, effect: float) -> bool:
        design = planted_design(number, clusters, name) if effect else Design.numbered(number)
        found = reported(name, rng, System.drawn(rng, design, effect))
        return found.verdict.state == "detected"

    @cache
    def of_design(place: int) -> float:
        """Half the width of the interval: how large a bias so many clusters would tell, as a
        verdict that is open says ("about 4 times as many …")."""
        rng, halves = np.random.default_rng(place), []
        for _ in range(2):
            found = reported(name, rng, System.drawn(rng, planted_design(place, clusters, name)))
            measure = bias_measures(found)[0]
            one = found[measure.name]
            assert one.low is not None
            assert one.high is not None
            halves.append((one.high - one.low) / 2 / _slope(name, measure.name))
        return float(np.mean(halves))

    return Case(command="measure", instrument=name, path=path, concludes=concludes,
                stated=lambda number: of_design(number % _DESIGNS))  # fmt: skip


# -- compare ---------------------------------------------------------------------------------------


@cache
def _with_margins(name: str, columns: tuple[str, ...]) -> ScoringSpec:
    """Give an instrument with what a comparison concludes from: primary measures, and those with a
    margin."""
    instrument = instrument_named(name)
    names = [m.name for m in instrument.measures if m.role == "primary" or m.margin is not None]
    known = [one for one in names if _reads(instrument.measure(one)) <= set(columns)]
    return read_alone(instrument, known, columns)


def _reads(measure: Measure) -> set[str]:
    exprs = [*measure.columns().values(), *([] if measure.lost is None else [measure.lost])]
    return {name for expr in exprs for name in expr.meta.root_names()}


def compared(
    name: str, rng: Rng, before: System, after: System, *, again: float, repeats: int = 1
) -> Comparison:
    """Compare runs of two systems, which share all but a share of their answers' chances."""
    u = before.chances(rng)
    sides, columns = [], tuple[str, ...]()
    for system in (before, after):
        runs = []
        for number in range(repeats):
            rows = frame(name, rng, system.run(rng, system.again(rng, u, again)))
            columns = tuple(rows.columns)
            runs.append(OutcomeRun(name, rows, rng, path=f"run{number}", seed=number))
        sides.append(runs)
    return compare(_with_margins(name, columns), *sides)


def _compare_case(name: str, path: str) -> Case:
    clusters = 480 if name in SUMS else 240 if name in SHARES else 40
    if name in (*MEANS_OF_CLUSTERS, "rtp"):
        clusters = 160
    repeats = (1, 1, 1, 2) if name in ("subtler_choices", "crows_pairs") else (1,)

    def concludes(rng: Rng, number: int, effect: float) -> bool:
        """Without bias: two runs of one system, which is itself biased in every other audit."""
        design = planted_design(number, clusters, name) if effect else Design.numbered(number)
        system = System.drawn(rng, design, 0.0 if effect else (0.0, 0.3)[number // 2 % 2])
        again = 0.3 if effect else (0.1, 0.3, 1.0)[number % 3]
        found = compared(name, rng, system, system.biased(effect), again=again,
                         repeats=repeats[number % len(repeats)])  # fmt: skip
        return found.verdict.state == "detected"

    @cache
    def of_design(place: int) -> float:
        """The smallest change that a comparison says that it would have shown."""
        rng = np.random.default_rng(place)
        system = System.drawn(rng, planted_design(place, clusters, name))
        found = compared(name, rng, system, system, again=0.3)
        judged_by = list(found.judged())
        change, measure = judged_by[0]
        size = smallest_shown(change, measure, family=len(judged_by))
        assert size is not None
        return size / _slope(name, measure.name)

    return Case(command="compare", instrument=name, path=path, concludes=concludes,
                stated=lambda number: of_design(number % _DESIGNS))  # fmt: skip


COMPARED: Mapping[str, Sequence[str]] = {
    "compare: share": ("bbq", "subtler_choices", "overcorrection", "xstest", "llmbar",
                       "evalbiasbench"),
    "compare: share around 50": ("crows_pairs", "winobias", "subtler_biases", "seegull",
                                 "redditbias", "political"),
    "compare: mean": ("squad", "statements", "bold", "holisticbias"),
    "compare: sum of shares": SUMS,
    "compare: mean of clusters": ("stereoset", "rtp"),
}  # fmt: skip

# -- people: decisions, rankings, swaps ------------------------------------------------------------


class Simulated(Protocol):
    """How audits of one instrument about people are drawn."""

    PAIRS: int  # designs of a comparison

    def detectable(self, number: int) -> float:
        """Say what an audit of this number calls its smallest detectable effect."""

    def two_systems(self, rng: Rng, number: int, effect: float) -> tuple[Any, Any]:
        """Draw two runs, of which the second has so large an effect more than the first."""


def _decisions(rng: Rng, number: int, effect: float) -> bool:
    table = people.with_bias(rng, number, effect) if effect else people.without_bias(rng, number)
    return _is_shown("decisions", people.run_of(table))


def _rankings(rng: Rng, number: int, effect: float) -> bool:
    drawn = ranked.with_bias(rng, number, effect) if effect else ranked.without_bias(rng, number)
    return _is_shown("rankings", drawn)


def _swap(rng: Rng, number: int, effect: float) -> bool:
    """The conclusion alone, which `measure counterfactual` and `discrim_eval` share."""
    answers = (swap_answers.with_bias(rng, number, effect) if effect
               else swap_answers.without_bias(rng, number))  # fmt: skip
    return swap_answers.measured([answers])[0].state == "detected"


def _is_shown(name: str, run: OutcomeRun) -> bool:
    return report(instrument_named(name), run).verdict.state == "detected"


def _people_compared(name: str, simulated: Simulated) -> Case:
    """Compare two systems that decide about the same people."""

    def concludes(rng: Rng, number: int, effect: float) -> bool:
        runs = simulated.two_systems(rng, number, effect)
        return compare(instrument_named(name), *runs).verdict.state == "detected"

    @cache
    def of_design(place: int) -> float:
        """The smallest change that a comparison says that it would have shown, as the effect that
        moves it so far."""
        rng = np.random.default_rng(place)
        sizes: list[float] = []
        slopes: list[float] = []
        for effect, found in ((0.0, sizes), (0.5, slopes), (0.0, sizes), (0.5, slopes)):
            runs = simulated.two_systems(rng, place, effect)
            changes = list(compare(instrument_named(name), *runs).judged())
            change, measure = max(changes, key=lambda one: abs(one[0].difference or 0.0))
            size = smallest_shown(change, measure, family=len(changes))
            assert change.difference is not None
            assert size is not None
            found.append(abs(change.difference) / effect if effect else size)
        return float(np.mean(sizes) / np.mean(slopes))

    return Case(command="compare", instrument=name, path="compare: people", concludes=concludes,
                stated=lambda number: of_design(number % simulated.PAIRS))  # fmt: skip


# -- gate ------------------------------------------------------------------------------------------


def _gate(rng: Rng, number: int, effect: float) -> bool:
    templates = 40 if effect else (12, 25, 60)[number % 3]
    again = 0.3 if effect else (0.1, 0.3, 1.0)[number // 3 % 3]
    runs = two_runs(rng, templates, effect, again)
    if not effect and number % 4 == 3:
        runs = _lossy(rng, runs[0]), _lossy(rng, runs[1])
    return judged(runs).verdict == "fail"


def _lossy(rng: Rng, run: InMemory) -> InMemory:
    """Give the run with one answer in thirty missing, in any order."""
    rows = run.rows.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31)))
    gone = pl.Series(rng.random(len(rows)) < 1 / 30)
    state = pl.when(gone).then(pl.lit("failed")).otherwise(pl.col("status"))
    return InMemory(str(run.path), rows.with_columns(status=state))


@cache
def _gate_states() -> float:
    rng, sizes = np.random.default_rng(3), []
    for _ in range(4):
        found = judged(two_runs(rng, 40, 0.0, 0.3)).checks[0]
        assert found.change is not None
        change = found.change
        sizes.append(detectable_change(change.se, change.clusters - 1, family=len(checks())))
    return float(np.mean(sizes))


# -- frontier --------------------------------------------------------------------------------------


class TwoNumbers(ScoringSpec):
    """An instrument with a harm and a utility."""

    name, title, clusters, columns, facts = "two", "two numbers", "templates", (), {}
    measures = (
        Measure(name="harm", label="harm", statistic=Mean(pl.col("harm")), better="lower",
                role="primary", within=(0, 1)),
        Measure(name="utility", label="utility", statistic=Mean(pl.col("utility")),
                better="higher", margin=0.1, within=(0, 1)),
    )  # fmt: skip
    harm, utility = "harm", "utility"


TWO = TwoNumbers()
_TEMPLATES, _EACH = 60, 2


def _arms(rng: Rng, benefit: float, again: float) -> list[pl.DataFrame]:
    """The plain prompt, two references and a method that lowers the harm of every template by the
    same share. Utility is drawn again for few answers."""
    rows = _TEMPLATES * _EACH
    cluster = np.repeat(np.arange(_TEMPLATES), _EACH)
    harm, shared = rng.beta(3, 3, _TEMPLATES)[cluster], rng.random((2, rows))
    arms = []
    for arm in range(4):
        redrawn = rng.random((2, rows)) < [[again], [0.02]]
        u = np.where(redrawn, rng.random((2, rows)), shared)
        less = 1 - 2 * benefit if arm == 3 else 1.0
        values = {"harm": u[0] < harm * less, "utility": u[1] < 0.9}
        arms.append(pl.DataFrame({
            "item_id": np.arange(rows).astype(str), "cluster": cluster.astype(str), **values,
        }).with_columns(state=pl.lit(SCORED)))  # fmt: skip
    return arms


def _changes(rng: Rng, benefit: float, again: float) -> tuple[list[Change], Change]:
    plain, prompt, vote, method = _arms(rng, benefit, again)
    harm, utility = TWO.measures
    against = adjusted([_change(one, method, harm) for one in (prompt, vote)])
    return against, _change(plain, method, utility)


def _change(before: pl.DataFrame, after: pl.DataFrame, measure: Measure) -> Change:
    return PairTotals.of(TWO, iter([before]), iter([after])).change(measure)


def _frontier(rng: Rng, number: int, effect: float) -> bool:
    """Without a benefit: a method is called worth its calls, or shown to do more harm or to cost
    utility. That a benefit is excluded is true."""
    again = 0.3 if effect else (0.1, 0.3, 1.0)[number % 3]
    against, utility = _changes(rng, effect, again)
    found = worth(TWO, dict(zip(("the prompt", "the vote"), against, strict=True)), utility,
                  family=2)  # fmt: skip
    if effect:
        return found.kind is CostVerdict.WORTH_IT
    false_bad = (
        found.kind is CostVerdict.NOT_WORTH_IT and found.why.code != "worth.benefit_excluded"
    )
    return found.kind is CostVerdict.WORTH_IT or false_bad


def simulated_frontier(rng: Rng, benefit: float) -> Frontier:
    """Give a frontier of one method over the references of an instrument."""
    frames = _arms(rng, benefit, 0.3)
    instrument = read_alone(TWO, ["harm", "utility"], frames[0].columns)
    names = ("default", "fairness", "vote", "method")
    vars(instrument).update(references=names[:3])
    return frontier(
        instrument,
        [FrontierArm(name=name, run=OutcomeRun("two", rows, rng, path=name))
         for name, rows in zip(names, frames, strict=True)],
        calls=1,
    )  # fmt: skip


@cache
def _frontier_states() -> float:
    rng, harm, sizes = np.random.default_rng(4), TWO.measures[0], []
    for _ in range(4):
        against, _utility = _changes(rng, 0.0, 0.3)
        sizes += [smallest_shown(one, harm, family=2, together=2) or 0.0 for one in against]
    return float(np.mean(sizes))


# -- monitor, --stop-when, stability ------------------------------------------------------------

_LOOKS, _BEFORE = 50, 20


def _watch(rng: Rng, number: int, effect: float) -> bool:
    """A watch that raises a false alarm once in 1,000 looks raises one within 50 looks in 5 % at
    most. A change is found if it is within five looks."""
    clusters = 40 if effect else (10, 40, 90)[number % 3]
    chance = rng.beta(0.5, 0.5, clusters)
    looks = (rng.random((_LOOKS, clusters)) < chance).astype(float)
    if effect:
        more = rng.random((5, clusters)) < np.clip(chance + effect * (1 - chance) * 2, 0, 1)
        looks = np.concatenate([looks[:_BEFORE], more.astype(float)])
    elif number % 2:
        looks[rng.random(looks.shape) < 0.03] = np.nan
    return bool(watched(looks, 1_000.0, draws=199, seed=number).alarms)


def _watch_states() -> float:
    """2.8 standard errors of the change from 20 looks to one, of 40 clusters whose chances are
    spread as above: the mean of p·(1 − p) is 1/8. The chances above move by the effect, as their
    mean of 1 − p is ½."""
    return 2.8 * math.sqrt(1 / 8 / 40 * (1 + 1 / _BEFORE))


_MARGIN = 0.05


def _until(rng: Rng, number: int, effect: float) -> bool:
    """Without bias beyond the margin: the true score lies at it, and "beyond" is false."""
    clusters = 100 if effect else (40, 100)[number % 2]
    design = Design(clusters=clusters, shape=SHAPES[number % len(SHAPES)],
                    missing="" if effect else MISSING[number % 4])  # fmt: skip
    return _stopped(rng, design, _MARGIN + effect) == Outcome.DETECTED


def _stopped(rng: Rng, design: Design, bias: float) -> str:
    system = System.drawn(rng, design, bias)
    rows = frame("subtler_choices", rng, system.run(rng))
    run = OutcomeRun("subtler_choices", rows, rng)
    sizes = rows.group_by("cluster", maintain_order=True).len()
    until = SequentialPlan(
        measure="stereotype_lead", margin=_MARGIN, block=10,
        order=tuple(sizes["cluster"].to_list()), sizes=tuple(sizes["len"].to_list()),
        rows={"stereotype_lead": (int(sizes["len"].max()), len(rows))},  # type: ignore[arg-type]
    )  # fmt: skip
    run.record.source["until"] = until.to_dict()
    return stand(_with_bias_scores("subtler_choices", tuple(rows.columns)), run, until)[0].verdict


@cache
def _until_states() -> float:
    """How far beyond the margin a score must lie to be shown by as many clusters as are planned, by
    the interval of a bet: √(2·ln(2/0.05)/100)·sd, and a half more for looking all the time."""
    return 1.5 * 0.6 * math.sqrt(2 * math.log(40) / 100)


def _reliability(rng: Rng, number: int, effect: float) -> bool:
    clusters, systems = (30, 2) if effect else ((8, 20, 40)[number % 3], 2 + number % 2)
    values = _values(rng, clusters, systems, effect)
    names = [f"system {place // 2}" for place in range(2 * systems)]
    owners = np.repeat(np.arange(clusters), 2).tolist()
    measure = instrument_named("subtler_choices").measure("stereotyped")
    return any(pair.better for pair in told_apart(measure, values, owners, names))


def _values(rng: Rng, clusters: int, systems: int, effect: float) -> np.ndarray:
    """Two runs of each system over two items of each cluster; the second system is worse."""
    chance = np.repeat(rng.beta(1, 1, clusters), 2)[:, None]
    worse = np.zeros(2 * systems)
    worse[2:4] = 2 * effect
    return (rng.random((2 * clusters, 2 * systems)) < chance + worse * (1 - chance)).astype(float)


@cache
def _reliability_states() -> float:
    """Half the width of the interval of a difference."""
    rng, halves = np.random.default_rng(5), []
    measure = instrument_named("subtler_choices").measure("stereotyped")
    for _ in range(5):
        owners = np.repeat(np.arange(30), 2).tolist()
        (pair,) = told_apart(measure, _values(rng, 30, 2, 0.0), owners, ["a", "a", "b", "b"])
        assert pair.low is not None
        assert pair.high is not None
        halves.append((pair.high - pair.low) / 2)
    return float(np.mean(halves))


# -- judges, harms, screens, estimates from labels -------------------------------------------------

_JUDGES = (
    judge_audits.Judge(),
    judge_audits.Judge(noise=1.0, ties=0.0, lost=0.0),
    judge_audits.Judge(lost=0.3),
    judge_audits.Judge(spread=2.0, noise=0.2, ties=1.0, lost=0.1),
    judge_audits.Judge(lost_women=0.1),
)


def _judge(rng: Rng, number: int, effect: float) -> bool:
    judge = judge_audits.Judge(bias=effect) if effect else _JUDGES[number % len(_JUDGES)]
    found, _ = judge_audits.audit(judge, rng)
    planted_in = tuple(one for one in found if not effect or one.name == "identity")
    return judge_audits.is_failed(planted_in)


@cache
def _judge_states() -> float:
    rng = np.random.default_rng(1)
    return float(np.mean([judge_audits.audit(_JUDGES[0], rng)[1] for _ in range(5)]))


def _harm(rng: Rng, number: int, effect: float) -> bool:
    lost = 0.02 if effect else (0.02, 0.1, 0.5)[number % 3]
    errors = 0.1 if effect else (0.02, 0.1, 0.15)[number // 3 % 3]
    return judge_audits.is_failed(
        judge_audits.harm_check(rng, errors=errors, in_a_group=effect, lost=lost)
    )


def _harm_states() -> float:
    """2.8 standard errors of the false alarms on 20 texts of a group, at the bar of ½, beyond that
    bar: by its largest standard error. The judge has 0.1 of them already."""
    bar = judge_audits.HARMS.measure("false_alarms_by_group").allowed
    assert bar is not None
    return (bar.at_most + 2.8 * math.sqrt(0.25 / 20) - 0.1) / 2


def _labels(rng: Rng, number: int, effect: float) -> bool:
    """Without bias: the interval misses the rate. Planted: it excludes a rate so far from it."""
    scorer = (SureScorer(unsure=0.2, missed=0.0), SureScorer(unsure=0.1, missed=0.02),
              SureScorer(unsure=0.5, missed=0.1, sure=0.02))[number % 3]  # fmt: skip
    found = rate_from_few_labels(rng, scorer, (100, 200)[number % 2])
    if effect:
        return not found.low <= found.truth + effect <= found.high
    return not found.holds


@cache
def _labels_state() -> float:
    rng, halves = np.random.default_rng(6), []
    for number in range(6):
        scorer = (SureScorer(unsure=0.2, missed=0.0), SureScorer(unsure=0.1, missed=0.02),
                  SureScorer(unsure=0.5, missed=0.1, sure=0.02))[number % 3]  # fmt: skip
        found = rate_from_few_labels(rng, scorer, (100, 200)[number % 2])
        halves.append((found.high - found.low) / 2)
    return float(np.max(halves))


def _screen(rng: Rng, number: int, effect: float) -> bool:
    """The planted change moves a share `effect` of the texts across a score."""
    looks, texts = (1, 300) if effect else ((1, 300), (6, 50), (12, 25))[number % 3]
    return screen_looks(rng, looks=looks, texts=texts, change=_power(effect)).drifted


def _power(distance: float) -> float:
    """Give c such that x and x^(1/c), both distributions on [0, 1], are so far apart."""
    place = np.linspace(0.001, 0.999, 999)
    tried = np.linspace(1.0, 8.0, 701)
    apart = np.abs(place[:, None] - place[:, None] ** (1 / tried)).max(axis=0)
    return float(tried[np.searchsorted(apart, distance)])


@cache
def _screen_states() -> float:
    """The share of texts that one look at 300 texts says that it would see moved, 4 times in 5."""
    found = screen_looks(np.random.default_rng(7), looks=1, texts=300)
    shares = np.linspace(0, 1, 1001)
    return float(shares[np.searchsorted([found.power(one) for one in shares], LEAST_FOUND)])


def _always(stated: Callable[[], float]) -> Stated:
    """Give the same statement for the audit of any number."""
    return lambda _: stated()


CASES: tuple[Case, ...] = (
    *(_report_case(name, "measure: shares") for name in SHARES),
    *(_report_case(name, "measure: sums of shares") for name in SUMS),
    *(_report_case(name, "measure: mean of clusters") for name in MEANS_OF_CLUSTERS),
    *(
        Case(
            command="measure",
            instrument=name,
            path=f"measure: {name}",
            concludes=concludes,
            stated=simulated.detectable,
        )
        for name, concludes, simulated in (
            ("decisions", _decisions, people),
            ("rankings", _rankings, ranked),
            ("counterfactual", _swap, swap_answers),
        )
    ),
    *(_compare_case(name, path) for path, names in COMPARED.items() for name in names),
    *(
        _people_compared(name, simulated)
        for name, simulated in (
            ("decisions", people),
            ("rankings", ranked),
            ("counterfactual", swap_answers),
        )
    ),
    *(
        Case(
            command=command,
            instrument="",
            path=command,
            concludes=concludes,
            stated=_always(stated),
        )
        for command, concludes, stated in (
            ("gate", _gate, _gate_states),
            ("frontier", _frontier, _frontier_states),
            ("monitor", _watch, _watch_states),
            ("measure --stop-when", _until, _until_states),
            ("stability", _reliability, _reliability_states),
            ("audit judge", _judge, _judge_states),
            ("audit harm", _harm, _harm_states),
            ("scorers estimate", _labels, _labels_state),
            ("scorers screen apply", _screen, _screen_states),
        )
    ),
)
# Instruments that conclude by the code of another one.
LIKE = {"discrim_eval": "counterfactual", "actions": "counterfactual"}


def row(cases: Sequence[Case], name: str, null: int, planted: int, seed: int = 20261118) -> Row:
    """Give the shares over these cases, in turn; each goes through all designs."""
    rng, many = np.random.default_rng([seed, *name.encode()]), len(cases)
    false = sum(cases[n % many].false(rng, n // many + n % many) for n in range(null))
    found = sum(cases[n % many].found(rng, n // many + n % many) for n in range(planted))
    return Row(name=name, null=null, false=false / null, planted=planted, found=found / planted)


def likelier(outcomes: Iterable[bool], first: float, second: float, *, least: int = 0) -> bool:
    """Say whether a chance is rather the first than the second, by Wald's sequential test: with
    either chance the answer is wrong in 2 % of all cases.

    Args:
        outcomes: What was drawn; no more of it is taken than the answer needs.
        first: One chance of an outcome that is true.
        second: The other one.
        least: How many outcomes are looked at in any case.
    """
    bound, log = math.log((1 - _WRONG) / _WRONG), 0.0
    for n, outcome in enumerate(outcomes, 1):
        log += math.log(first / second if outcome else (1 - first) / (1 - second))
        if abs(log) >= bound and n >= least:
            break
    return log > 0


@dataclass(frozen=True, kw_only=True)
class QuickLook:
    """Whether cases, in turn, keep to their bars: false conclusions in 5 % rather than in 10 %, and
    planted biases found in 90 % rather than in 75 %."""

    few_false: bool
    most_found: bool

    @classmethod
    def of(cls, cases: Sequence[Case], name: str, seed: int = 20261118) -> "QuickLook":
        """Look at as many audits as Wald's test needs, and four without bias and two with one of
        each case in any case."""
        rng, many = np.random.default_rng([seed, *name.encode()]), len(cases)
        false = (cases[n % many].false(rng, n // many + n % many) for n in range(NULL))
        few = likelier(false, MOST_FALSE, 2 * MOST_FALSE, least=4 * many)
        found = (cases[n % many].found(rng, n // many + n % many) for n in range(PLANTED))
        return cls(few_false=few, most_found=likelier(found, 0.9, 0.75, least=2 * many))


def cases_by(kind: str) -> dict[str, list[Case]]:
    """Give the cases by their command, by the path that they share, or each under its name."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(getattr(case, kind), []).append(case)
    return found


def result_line(rows: Sequence[Row]) -> str:
    """Give the largest share of false conclusions and the smallest of found ones."""
    worst, least = max(one.false for one in rows), min(one.found for one in rows)
    return f"RESULT null_worst={worst:.3f} found_worst={least:.3f}"


def record(rows: Sequence[Row]) -> None:
    """Write the rows beside those that are recorded, in the order of the cases."""
    known = json.loads(RECORD.read_text())["rows"] if RECORD.exists() else []
    both = {one["name"]: one for one in (*known, *map(asdict, rows))}
    versions = {"python": platform.python_version(), "numpy": np.__version__,
                "polars": pl.__version__}  # fmt: skip
    order = [name for kind in ("path", "name") for name in cases_by(kind)]
    kept = [both[name] for name in dict.fromkeys(order) if name in both]
    RECORD.write_text(json.dumps({"versions": versions, "rows": kept}, indent=1) + "\n")
    text = PAGE.read_text()
    before, after = text.split(BEGINS)[0], text.split(ENDS)[1]
    PAGE.write_text(f"{before}{table([Row(**one) for one in kept], versions)}{after}")


def table(rows: Sequence[Row], versions: Mapping[str, str]) -> str:
    """Give the part of the page that is measured."""
    with_versions = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"| {one.name} | {100 * one.false:.1f}% | {100 * one.found:.1f}% |" for one in rows]
    head = ("| Cases | False | Found |", "| --- | --- | --- |")
    written = "\n".join([*head, *lines, "", result_line(rows), "", f"({with_versions})"])
    return f"{BEGINS}\n{written}\n{ENDS}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--null", type=int, default=NULL, help="audits without bias of each row")
    parser.add_argument("--planted", type=int, default=PLANTED, help="audits with a planted bias")
    parser.add_argument(
        "--by",
        choices=("command", "path", "name"),
        default="name",
        help="a row for each case, or for all cases of a path or a command in turn",
    )
    parser.add_argument("--only", default="", help="rows whose name begins with this")
    parser.add_argument("--record", action="store_true", help="write the record and the page")
    given = parser.parse_args()  # fmt: skip
    began, rows = time.perf_counter(), []
    print(f"{'row':32} {'false':>7} {'found':>7}   of {given.null} and {given.planted}")
    for name, cases in cases_by(given.by).items():
        if not name.startswith(given.only):
            continue
        one = row(cases, name, given.null, given.planted)
        rows.append(one)
        said = "" if one.holds else "   beyond the bar"
        print(f"{one.name:32} {one.false:7.3f} {one.found:7.3f}{said}", flush=True)
        if given.record:
            record([one])
    print(f"{time.perf_counter() - began:.0f} seconds")
    print(result_line(rows))


if __name__ == "__main__":
    main()
