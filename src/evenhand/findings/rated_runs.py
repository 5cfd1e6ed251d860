"""What people think of each run: the mean of its marks, what missing marks could change, and how
far it is from the first run on the same items."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenhand.findings.clustered_agreement import mean_over
from evenhand.findings.estimates import Bounds, Estimate
from evenhand.metrics.bias_scale import RUBRIC
from evenhand.rating import rubric
from evenhand.rating.key import Key

Floats = NDArray[np.float64]
Marks = Floats  # a row per rater, a column per text, NaN where there is no mark


def asked_of_texts(key: Key, rows: pl.DataFrame, question: str) -> Floats:
    """Count the marks that were asked for of each text, in the sheets that came back."""
    asked = rows.filter(pl.col("question") == question)["id"].value_counts()
    times = dict(asked.iter_rows())
    return np.array([times.get(one.id, 0) for one in key.texts], dtype=np.float64)


def _of_run(key: Key, place: int) -> dict[str, int]:
    """The items of a run, each with the column of its text."""
    return {item: n for n, one in enumerate(key.texts) for run, item in one.uses if run == place}


def _text_means(marks: Marks) -> Floats:
    given = (~np.isnan(marks)).sum(axis=0)
    return np.where(given > 0, np.nansum(marks, axis=0) / np.maximum(given, 1), np.nan)


def mean_of_run(key: Key, place: int, marks: Marks, asked: Floats) -> Estimate:
    """Estimate the mean over texts of the mean of their raters; the interval is over items, for
    these raters."""
    columns = list(_of_run(key, place).values())
    means = _text_means(marks)[columns]
    known = ~np.isnan(means)
    clusters = [key.texts[column].cluster for column in columns]
    bounds = _bounds(marks[:, columns], asked[columns])
    name = key.runs[place].run
    found = mean_over(name, means[known], np.array(clusters)[known].tolist(), rubric.SCALE)
    return replace(found, bounds=bounds)


def _bounds(marks: Marks, asked: Floats) -> Bounds | None:
    """What the mean of a run could be if the missing marks were known."""
    missing = asked - (~np.isnan(marks)).sum(axis=0)
    if not missing.any():
        return None
    use = asked > 0
    ends = [float(one[use].mean()) for one in _ends(marks, asked)]
    return Bounds(missing=int(missing.sum()), low=ends[0], high=ends[1])


def _ends(marks: Marks, asked: Floats) -> tuple[Floats, Floats]:
    """The least and the largest mean that each text could have if its missing marks were known."""
    missing = asked - (~np.isnan(marks)).sum(axis=0)
    known = np.nansum(marks, axis=0)
    least, most = ((known + end * missing) / np.maximum(asked, 1) for end in rubric.SCALE)
    return least, most


def change_of_run(key: Key, place: int, marks: Marks, asked: Floats) -> Estimate:
    """Estimate how far the marks of a run are above those of the first, item by item."""
    means, first, other = _text_means(marks), _of_run(key, 0), _of_run(key, place)
    both = [item for item in other if item in first]
    moved = np.array([means[other[item]] - means[first[item]] for item in both])
    known = ~np.isnan(moved)
    clusters = np.array([key.texts[other[item]].cluster for item in both])[known]
    width = rubric.SCALE[1] - rubric.SCALE[0]
    found = mean_over(key.runs[place].run, moved[known], clusters.tolist(), (-width, width))
    return replace(found, bounds=_bounds_of_change(other, first, marks, asked))


def _bounds_of_change(
    other: dict[str, int], first: dict[str, int], marks: Marks, asked: Floats
) -> Bounds | None:
    """What the change could be if the missing marks were known; equal words of both runs are one
    text, which is as far from itself whatever its marks."""
    pairs = [(n, first[i]) for i, n in other.items() if i in first and asked[n] and asked[first[i]]]
    told_apart = [(n, m) for n, m in pairs if n != m]
    columns = sorted({column for pair in told_apart for column in pair})
    missing = (asked - (~np.isnan(marks)).sum(axis=0))[columns].sum()
    if not missing:
        return None
    least, most = _ends(marks, asked)
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
