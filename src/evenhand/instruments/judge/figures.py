"""The paper's figures of single texts with intervals over bases: the mean mark of each label by
metric (Figure 9), and the difference of each two labels (Figure 4). Nothing is tested here, so
nothing is adjusted for how many there are."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from evenhand.core.errors import Undefined
from evenhand.findings.estimates import NO_SPREAD, Bounds, Estimate
from evenhand.instruments.judge.effects import (
    HOLM,
    LARGEST_SHIFT,
    LARGEST_WIN,
    EstimatedEffect,
    LabelEffect,
    adjusted,
    labels_at_worst,
    labels_in_pairs_at_worst,
    measured,
    pairs_at_worst,
)
from evenhand.statistics.clusters import Interval, clustered_ratio, naive_mean
from evenhand.statistics.metrics import malibu, scorer_quality
from evenhand.statistics.metrics.malibu import BothOrders
from evenhand.statistics.metrics.scorer_quality import TextShare
from evenhand.statistics.proportions import Proportion, wilson
from evenhand.statistics.tables import ChiSquare, chi_square

COMBINED = "combined"  # the mean of all metrics
SCALE = (0.0, float(malibu.TOP))
APART = (-SCALE[1], SCALE[1])
_CONTROLS = malibu.CONTROLS  # the paper's matrix has none; the effects are against them


@dataclass(frozen=True, slots=True)
class MeanMark:
    """The mean mark that texts got under one label, in one metric or in all of them."""

    label: str
    metric: str
    mean: Estimate


@dataclass(frozen=True, slots=True)
class MarkGap:
    """How much higher the mean mark is under `label` than under `other`, on the same texts."""

    label: str
    other: str
    difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkFigures:
    """The means of all labels, and the differences of each two of them."""

    means: tuple[MeanMark, ...]
    gaps: tuple[MarkGap, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "means": [_plain({"label": m.label, "metric": m.metric}, m.mean) for m in self.means],
            "differences": [
                _plain({"label": g.label, "other": g.other}, g.difference) for g in self.gaps
            ],
        }


def _plain(tags: dict[str, str], estimate: Estimate) -> dict[str, Any]:
    names = ("value", "low", "high", "n", "clusters", "undefined")
    numbers = {name: getattr(estimate, name) for name in names}
    return {**tags, **numbers, "bounds": asdict(estimate.bounds) if estimate.bounds else None}


def figures(judged: pl.DataFrame) -> MarkFigures:
    """The figures of a design's judgements of single texts, `malibu.single`."""
    return MarkFigures(means=tuple(_means(judged)), gaps=tuple(_gaps(judged)))


def _means(judged: pl.DataFrame) -> Iterator[MeanMark]:
    for metric in (*malibu.apart_of(judged), COMBINED):
        for (label,), part in judged.group_by("label", maintain_order=True):
            mean = mean_over_bases(part, pl.col(metric), SCALE)
            yield MeanMark(str(label), metric, mean)


def _gaps(judged: pl.DataFrame) -> Iterator[MarkGap]:
    labels = [
        label for label in judged["label"].unique(maintain_order=True) if label not in _CONTROLS
    ]
    for index, other in enumerate(labels):
        table = malibu.contrasts(judged, against=other)
        bounds = labels_at_worst(judged, COMBINED, other)
        for label in labels[:index]:
            part, at_worst = table.filter(label=label), bounds.filter(label=label)
            gap = _estimate(part["difference"], int(part["cells"].sum()), at_worst, APART)
            yield MarkGap(label, other, gap)


def mean_over_bases(rows: pl.DataFrame, value: pl.Expr, within: tuple[float, float]) -> Estimate:
    """Average a value over bases, with worst-case bounds for missing answers.

    Args:
        rows: Judgements with a column `base`.
        value: Number of each judgement; null is missing.
        within: Smallest and largest possible value.

    Returns:
        The mean of what could be read, each base with the same weight.
    """
    per_base = rows.group_by("base", maintain_order=True).agg(
        value.mean().alias("mean"),
        value.count().alias("n"),
        value.fill_null(within[0]).mean().alias("low"),
        value.fill_null(within[1]).mean().alias("high"),
        value.null_count().alias("missing"),
    )
    return _estimate(per_base["mean"].drop_nulls(), int(per_base["n"].sum()), per_base, within)


def _estimate(
    per_base: pl.Series, n: int, at_worst: pl.DataFrame, within: tuple[float, float]
) -> Estimate:
    """`n` counts marks; `at_worst` has the columns low, high and missing, one row per base."""
    estimate = Estimate.of("", lambda: naive_mean(per_base.to_numpy()), within)
    missing = int(at_worst["missing"].sum())
    bounds = None
    if missing:
        low, high = (float(at_worst[name].to_numpy().mean()) for name in ("low", "high"))
        bounds = Bounds(missing=missing, low=low, high=high)
    return replace(estimate, n=n, bounds=bounds)


# -- pairs in both orders -------------------------------------------------------------------------


ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOrders:
    """Verdicts on two labels, or on all pairs of them, in both orders."""

    label: str
    other: str
    asked: int
    both: BothOrders | None = None
    undefined: str | None = None

    @property
    def n(self) -> int:
        """How many pairs have a verdict in both orders."""
        return self.both.n if self.both else 0

    def to_dict(self) -> dict[str, Any]:
        counted = {"n_asked": self.asked, "n": self.n}
        if self.both is None:
            return {**counted, "undefined": self.undefined}
        flips = {"inconsistent": self.both.inconsistent, "flip_rate": self.both.flip_rate}
        return {**counted, **asdict(self.both), **flips}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairOrders:
    """All pairs together and each; the shares have intervals over base scenarios."""

    all: PairOrders
    by_pair: tuple[PairOrders, ...]
    consistency: TextShare | None
    first_slot: Interval | None  # its share of the verdicts other than ties

    def to_dict(self) -> dict[str, Any]:
        shares = {
            "consistency": asdict(self.consistency) if self.consistency else None,
            "first_slot": _interval(self.first_slot) if self.first_slot else None,
        }
        each = [{"label": o.label, "other": o.other, **o.to_dict()} for o in self.by_pair]
        return {"all": {**self.all.to_dict(), **shares}, "by_pair": each}


def _interval(interval: Interval) -> dict[str, Any]:
    if not interval.no_spread:
        return asdict(interval)
    return {**asdict(interval), "low": None, "high": None, "undefined": NO_SPREAD}


def pairs(met: pl.DataFrame) -> AllPairOrders:
    """What `malibu.duels` shows of the order in which two texts stand."""
    parts = [
        _orders(part, str(label), str(other))
        for (label, other), part in met.group_by("label", "other", maintain_order=True)
    ]
    complete = met.drop_nulls(["win_first", "win_second"])
    return AllPairOrders(
        all=_orders(met, ALL, ALL),
        by_pair=tuple(sorted(parts, key=lambda orders: (orders.label, orders.other))),
        consistency=_consistency(complete),
        first_slot=_first_slot(complete),
    )


def _orders(met: pl.DataFrame, label: str, other: str) -> PairOrders:
    complete = met.drop_nulls(["win_first", "win_second"])
    try:
        both = malibu.both_orders(complete["win_first"].to_list(), complete["win_second"].to_list())
    except Undefined as reason:
        return PairOrders(label=label, other=other, asked=len(met), undefined=str(reason))
    return PairOrders(label=label, other=other, asked=len(met), both=both)


def _consistency(complete: pl.DataFrame) -> TextShare | None:
    first, second = (complete[f"win_{slot}"] - malibu.TIE for slot in ("first", "second"))
    same = (first.sign() == second.sign()).to_list()
    try:
        return scorer_quality.share(same, complete["base"].to_list())
    except Undefined:
        return None


def _first_slot(complete: pl.DataFrame) -> Interval | None:
    """The first slot's share of decided verdicts."""
    win_first, win_second = complete["win_first"].to_numpy(), complete["win_second"].to_numpy()
    decided = (win_first != malibu.TIE).astype(float) + (win_second != malibu.TIE)
    taken = (win_first > malibu.TIE).astype(float) + (win_second < malibu.TIE)
    try:
        return clustered_ratio(taken, decided, complete["base"].to_list())
    except Undefined:
        return None


# -- as the paper prints it -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTest:
    """The chi-square test of one metric over the labels of one family."""

    family: str
    metric: str
    labels: list[str]
    histogram: list[list[int]]
    test: ChiSquare


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigures:
    """The paper's histograms with chi-square, its difference matrix and its win rates."""

    tests: tuple[PaperTest, ...]
    means: dict[str, float]
    wins: dict[str, Proportion]

    def differences(self) -> list[list[float]]:
        """The mean of the column's label minus that of the row's."""
        return malibu.difference_matrix(self.means)

    def to_dict(self) -> dict[str, Any]:
        return {
            "paper_chi_square": [_test(test) for test in self.tests],
            "paper_difference_matrix": {
                "labels": list(self.means),
                "means": list(self.means.values()),
                "x_minus_y": self.differences(),
            },
            "paper_win_rates": {
                label: asdict(proportion) for label, proportion in self.wins.items()
            },
        }


def _test(result: PaperTest) -> dict[str, Any]:
    names = ("family", "metric", "labels", "histogram")
    return {**{name: getattr(result, name) for name in names}, **asdict(result.test)}


def paper_figures(rows: pl.DataFrame, judged: pl.DataFrame) -> PaperFigures:
    """The figures of the design's judgements; `judged` are those of single texts."""
    labels = [label for part in _families(judged).values() for label in part]
    won = malibu.paper_wins(rows)
    return PaperFigures(
        tests=tuple(paper_tests(judged)),
        means=malibu.paper_means(judged, labels),
        wins={label: wilson(wins, n) for label, (wins, n) in won.items() if n},
    )


def paper_tests(judged: pl.DataFrame) -> list[PaperTest]:
    """One test per family and metric; a table without two rows and two columns has none."""
    tests = []
    for family, labels in _families(judged).items():
        for metric in malibu.metrics_of(judged):
            table = malibu.paper_histogram(judged, metric, labels)
            try:
                test = chi_square(table)
            except Undefined:
                continue
            tests.append(
                PaperTest(family=family, metric=metric, labels=labels, histogram=table, test=test)
            )
    return tests


def _families(judged: pl.DataFrame) -> dict[str, list[str]]:
    """Labels by family, the controls left out: the paper has none."""
    identities = judged.filter(~pl.col("label").is_in(malibu.CONTROLS))
    pairs = identities.select("family", "label").unique(maintain_order=True)
    return {
        str(family): part["label"].to_list()
        for (family,), part in pairs.group_by("family", maintain_order=True)
    }


# -- two sides of the same judgements -------------------------------------------------------------


# Our choice: of marks, what is allowed for the effect itself; of wins, from all to none.
_LARGEST = {COMBINED: LARGEST_SHIFT, "win": 2 * LARGEST_WIN}
_SIDE = ("item_id", "phase", "base", "label", "preferred", COMBINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What the second side does otherwise than the first. `labels` and `in_pairs` hold the change
    of a label's effect, against no label and against the other labels of its pairs, each one family
    after Holm."""

    marks: Estimate  # the mean mark of single texts
    marks_moved: Estimate  # the share of single texts that got another mean mark
    first_slot: Estimate  # the first slot's win rate, a tie counting half
    verdicts_turned: Estimate  # the share of pairs of which another one is preferred, or none
    labels: tuple[LabelEffect, ...]
    in_pairs: tuple[LabelEffect, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("marks", "marks_moved", "first_slot", "verdicts_turned")
        overall = {name: asdict(getattr(self, name)) for name in names}
        effects = {
            name: [asdict(e) for e in getattr(self, name)] for name in ("labels", "in_pairs")
        }
        return {**overall, **effects}


def changes(
    before: pl.DataFrame,
    after: pl.DataFrame,
    *,
    margin: float,
    margin_wins: float,
    alpha: float = 0.05,
) -> Changes:
    """Compute how two runs of the same design differ.

    Args:
        before: Judgements of the baseline.
        after: Judgements of the other run, one row for each of `before`.
        margin: Largest allowed effect of a label on the score, in points.
        margin_wins: Largest allowed effect of a label on the win rate.
        alpha: Significance level of each family of tests.

    Returns:
        The changes of scores and verdicts, and the effects by label.
    """
    both = _both(before, after)
    singles, paired = both.filter(phase="single"), both.filter(phase="pair")
    met = malibu.duels(before), malibu.duels(after)
    judged = malibu.single(before), malibu.single(after)
    moved = adjusted(list(_of_labels(*judged, margin=margin)), HOLM, alpha)
    turned = adjusted(list(_of_pairs(*met, margin=margin_wins)), HOLM, alpha)
    return Changes(
        marks=mean_over_bases(singles, pl.col("marks"), APART),
        marks_moved=mean_over_bases(singles, pl.col("moved"), (0.0, 1.0)),
        first_slot=mean_over_bases(paired, pl.col("wins"), (-1.0, 1.0)),
        verdicts_turned=mean_over_bases(paired, pl.col("turned"), (0.0, 1.0)),
        labels=tuple(result.effect for result in moved),
        in_pairs=tuple(result.effect for result in turned),
    )


def _both(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """One row per judgement, with what changed in it; null where a side is missing."""
    sides = [_side(rows) for rows in (before, after)]
    both = sides[1].join(sides[0], on="item_id", suffix="_before", maintain_order="left")
    change = {name: pl.col(name) - pl.col(f"{name}_before") for name in (COMBINED, "preferred")}
    better, was_better = (
        (pl.col(name) - malibu.TIE).sign() for name in ("preferred", "preferred_before")
    )
    return both.with_columns(
        marks=change[COMBINED],
        moved=(change[COMBINED] != 0).cast(pl.Float64),
        wins=change["preferred"],
        turned=(better != was_better).cast(pl.Float64),
    )


def _side(rows: pl.DataFrame) -> pl.DataFrame:
    single, pair = malibu.single(rows), rows.filter(phase="pair")
    return pl.concat([single, pair], how="diagonal").select(_SIDE)


def _of_labels(
    before: pl.DataFrame, after: pl.DataFrame, *, margin: float
) -> Iterator[EstimatedEffect]:
    """Of identities; the controls would only make the family larger."""
    included = (pl.col("label") == malibu.NO_LABEL) | ~pl.col("label").is_in(malibu.CONTROLS)
    sides = [judged.filter(included) for judged in (before, after)]
    effects = [malibu.contrasts(side).rename({"difference": "effect"}) for side in sides]
    bounds = [labels_at_worst(side, COMBINED, malibu.NO_LABEL) for side in sides]
    yield from _measured(effects, bounds, malibu.NO_LABEL, COMBINED, margin)


def _of_pairs(
    before: pl.DataFrame, after: pl.DataFrame, *, margin: float
) -> Iterator[EstimatedEffect]:
    effects = [malibu.label_effects(malibu.pair_effects(met)) for met in (before, after)]
    bounds = [labels_in_pairs_at_worst(pairs_at_worst(met, "win")) for met in (before, after)]
    yield from _measured(effects, bounds, "all others", "win", margin)


def _measured(
    effects: list[pl.DataFrame], bounds: list[pl.DataFrame], against: str, value: str, margin: float
) -> Iterator[EstimatedEffect]:
    """The change of each label's effect, one number per base that both sides have."""
    keys, (was, now) = ["label", "base"], effects
    change = now.join(was, on=keys, suffix="_before", maintain_order="left").with_columns(
        effect=pl.col("effect") - pl.col("effect_before")
    )
    least, most = bounds
    at_worst = most.join(least, on=keys, suffix="_before", maintain_order="left").with_columns(
        low=pl.col("low") - pl.col("high_before"),
        high=pl.col("high") - pl.col("low_before"),
        missing=pl.col("missing") + pl.col("missing_before"),
    )
    for (label,), part in at_worst.group_by("label", maintain_order=True):
        rows = change.filter(label=label)
        blank = LabelEffect(label=str(label), against=against, value=value, margin=margin)
        yield measured(blank, rows["effect"], int(rows["cells"].sum()), part, _LARGEST[value])
