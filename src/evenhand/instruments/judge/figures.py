"""The paper's figures of single texts with intervals over bases: the mean mark of each label by
metric (Figure 9), and the difference of each two labels (Figure 4). Nothing is tested here, so
nothing is adjusted for how many there are."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from evenhand.findings.estimates import Bounds, Estimate
from evenhand.instruments.judge import worst
from evenhand.statistics.clusters import naive_mean
from evenhand.statistics.metrics import malibu

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
    for metric in (*malibu.metrics_of(judged), COMBINED):
        for (label,), part in judged.group_by("label", maintain_order=True):
            mean = mean_over_bases(part, pl.col(metric), SCALE)
            yield MeanMark(str(label), metric, mean)


def _gaps(judged: pl.DataFrame) -> Iterator[MarkGap]:
    labels = [
        label for label in judged["label"].unique(maintain_order=True) if label not in _CONTROLS
    ]
    for index, other in enumerate(labels):
        table = malibu.contrasts(judged, against=other)
        bounds = worst.of_labels(judged, COMBINED, other)
        for label in labels[:index]:
            part, at_worst = table.filter(label=label), bounds.filter(label=label)
            gap = _estimate(part["difference"], int(part["cells"].sum()), at_worst, APART)
            yield MarkGap(label, other, gap)


def mean_over_bases(rows: pl.DataFrame, value: pl.Expr, within: tuple[float, float]) -> Estimate:
    """The mean of a value, one number per base, of what could be read; what is missing lies at
    either end of what it can be."""
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
