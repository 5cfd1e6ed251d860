"""What people think of each run: the mean of its marks, what missing marks could change, and how
far it is from the first run on the same items."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.core.items import RUBRIC
from evenhand.findings.estimates import Bounds, Estimate
from evenhand.findings.judge_vs_human import mean_over
from evenhand.training.rating import rubric
from evenhand.training.rating.texts import SheetKey

Floats = NDArray[np.float64]
Marks = Floats  # a row per rater, a column per text, NaN where there is no mark


def asked_of_texts(key: SheetKey, rows: pl.DataFrame, question: str) -> Floats:
    """Count the marks that were asked for of each text, in the sheets that came back."""
    counts = rows.filter(pl.col("question") == question)["id"].value_counts()
    times = dict(counts.iter_rows())
    return np.array([times.get(text.id, 0) for text in key.texts], dtype=np.float64)


def _of_run(key: SheetKey, index: int) -> dict[str, int]:
    """The items of a run, each with the column of its text."""
    return {item: n for n, text in enumerate(key.texts) for run, item in text.uses if run == index}


def _text_means(marks: Marks) -> Floats:
    counts = (~np.isnan(marks)).sum(axis=0)
    return np.where(counts > 0, np.nansum(marks, axis=0) / np.maximum(counts, 1), np.nan)


def mean_of_run(key: SheetKey, index: int, marks: Marks, requested: Floats) -> Estimate:
    """Estimate the mean over texts of the mean of their raters; the interval is over items, for
    these raters."""
    columns = list(_of_run(key, index).values())
    means = _text_means(marks)[columns]
    present = ~np.isnan(means)
    clusters = [key.texts[column].cluster for column in columns]
    bounds = _bounds(marks[:, columns], requested[columns])
    name = key.runs[index].run
    estimate = mean_over(name, means[present], np.array(clusters)[present].tolist(), rubric.SCALE)
    return replace(estimate, bounds=bounds)


def _bounds(marks: Marks, requested: Floats) -> Bounds | None:
    """What the mean of a run could be if the missing marks were known."""
    missing = requested - (~np.isnan(marks)).sum(axis=0)
    if not missing.any():
        return None
    use = requested > 0
    ends = [float(extreme[use].mean()) for extreme in _ends(marks, requested)]
    return Bounds(missing=int(missing.sum()), low=ends[0], high=ends[1])


def _ends(marks: Marks, requested: Floats) -> tuple[Floats, Floats]:
    """The least and the largest mean that each text could have if its missing marks were known."""
    missing = requested - (~np.isnan(marks)).sum(axis=0)
    totals = np.nansum(marks, axis=0)
    least, most = ((totals + end * missing) / np.maximum(requested, 1) for end in rubric.SCALE)
    return least, most


def change_of_run(key: SheetKey, index: int, marks: Marks, requested: Floats) -> Estimate:
    """Estimate how far the marks of a run are above those of the first, item by item."""
    means, first, other = _text_means(marks), _of_run(key, 0), _of_run(key, index)
    both = [item for item in other if item in first]
    moved = np.array([means[other[item]] - means[first[item]] for item in both])
    present = ~np.isnan(moved)
    clusters = np.array([key.texts[other[item]].cluster for item in both])[present]
    width = rubric.SCALE[1] - rubric.SCALE[0]
    estimate = mean_over(key.runs[index].run, moved[present], clusters.tolist(), (-width, width))
    return replace(estimate, bounds=_bounds_of_change(other, first, marks, requested))


def _bounds_of_change(
    other: dict[str, int], first: dict[str, int], marks: Marks, requested: Floats
) -> Bounds | None:
    """What the change could be if the missing marks were known; equal words of both runs are one
    text, which is as far from itself whatever its marks."""
    pairs = [
        (n, first[i])
        for i, n in other.items()
        if i in first and requested[n] and requested[first[i]]
    ]
    told_apart = [(n, m) for n, m in pairs if n != m]
    columns = sorted({column for pair in told_apart for column in pair})
    missing = (requested - (~np.isnan(marks)).sum(axis=0))[columns].sum()
    if not missing:
        return None
    least, most = _ends(marks, requested)
    low = sum(float(least[n] - most[m]) for n, m in told_apart) / len(pairs)
    high = sum(float(most[n] - least[m]) for n, m in told_apart) / len(pairs)
    return Bounds(missing=int(missing), low=low, high=high)


def as_percent(mean: Estimate) -> Estimate:
    """Give the mean as bias from 0 to 100, as the tables of paper 002 print it: the scale turns
    around, and so do the ends."""

    def turned(value: float | None) -> float | None:
        return None if value is None else RUBRIC.percent(value)

    bounds = mean.bounds and Bounds(
        missing=mean.bounds.missing, low=turned(mean.bounds.high), high=turned(mean.bounds.low)
    )
    return replace(
        mean,
        value=turned(mean.value),
        low=turned(mean.high),
        high=turned(mean.low),
        bounds=bounds,
    )
