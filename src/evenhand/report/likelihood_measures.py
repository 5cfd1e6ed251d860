"""What is computed of each option set: which numbers, from which columns, and over which clusters.

A measure is a mean of numbers per item, or a function of totals over clusters. The first has a
cluster-robust t interval, the second one by resampling clusters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from evenhand.instruments.option_sets import ANTI, FEMALE, MALE, NEUTRAL, STEREOTYPE, UNRELATED
from evenhand.metrics import likelihood as metrics

Kind = Literal["preference", "quality", "size"]  # 50 is none | must not fall | neither
Totals = NDArray[np.float64]
_OPTIONS = (STEREOTYPE, ANTI, UNRELATED, FEMALE, MALE, NEUTRAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of a number per item; with `macro`, the mean over clusters of their means."""

    name: str
    label: str
    of: Callable[..., float]
    columns: tuple[str, ...]
    kind: Kind = "size"
    macro: bool = False
    only: str | None = None  # the group that it is about

    def values(self, items: pl.DataFrame) -> pl.DataFrame:
        """Columns key, cluster, value."""
        kept = items if self.only is None else items.filter(pl.col("group") == self.only)
        numbers = [self.of(*row) for row in kept.select(self.columns).iter_rows()]
        found = kept.select(
            key="item_id", cluster="cluster", value=pl.Series(numbers, dtype=pl.Float64)
        )
        if not self.macro:
            return found
        means = found.group_by("cluster", maintain_order=True).agg(pl.col("value").mean())
        return means.select("cluster", "value", key="cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTotals:
    """A function of sums over clusters."""

    name: str
    label: str
    table: Callable[[pl.DataFrame], pl.DataFrame]  # a row per cluster: cluster, and numbers
    value: Callable[[Totals], Totals]  # a row of their totals per resample → one number each
    kind: Kind = "size"


Measure = Mean | OfTotals


def distance_from_none(mean: Mean) -> OfTotals:
    """How far the mean of a preference is from 50."""

    def table(items: pl.DataFrame) -> pl.DataFrame:
        by = mean.values(items).group_by("cluster", maintain_order=True)
        return by.agg(pl.col("value").sum(), pl.len().cast(pl.Float64))

    return OfTotals(
        name=f"{mean.name}_distance",
        label=f"{mean.label}: distance from 50",
        table=table,
        value=lambda totals: np.asarray(metrics.distance(totals[:, 0] / totals[:, 1])),
    )


def _preference(name: str, label: str, *, per_token: bool, macro: bool = False) -> Mean:
    columns = (STEREOTYPE, ANTI)
    return Mean(
        name=name,
        label=label,
        of=metrics.preferred,
        columns=tuple(f"{c}_mean" for c in columns) if per_token else columns,
        kind="preference",
        macro=macro,
    )


def _three(
    name: str,
    label: str,
    of: Callable[..., float],
    *,
    per_token: bool,
    kind: Kind,
    macro: bool = False,
) -> Mean:
    columns = (STEREOTYPE, ANTI, UNRELATED)
    return Mean(
        name=name,
        label=label,
        of=of,
        columns=tuple(f"{c}_mean" for c in columns) if per_token else columns,
        kind=kind,
        macro=macro,
    )


def _fluency(*options: str) -> Mean:
    """Over all options alike, so that it does not fall where only a preference does."""
    return Mean(
        name="log_prob_per_token",
        label="log-probability a token, mean of the options",
        of=lambda *means: sum(means) / len(means),
        columns=tuple(f"{option}_mean" for option in options),
        kind="quality",
    )


_LMS = _three(
    "lms", "language-model score", metrics.language_model_score,
    per_token=True, kind="quality", macro=True,
)  # fmt: skip
_SS = _preference("ss", "stereotype score", per_token=True, macro=True)


def _icat_table(items: pl.DataFrame) -> pl.DataFrame:
    lms, ss = _LMS.values(items), _SS.values(items)
    joined = lms.join(ss, on="key", maintain_order="left")
    return joined.select("cluster", lms="value", ss="value_right", n=pl.lit(1.0))


def _slope_table(items: pl.DataFrame) -> pl.DataFrame:
    """Of each occupation: its mean gap where the pronoun stands for it, by its share of women."""
    own = items.filter(pl.col("group") == "occupation")
    gaps = own.group_by("cluster", maintain_order=True).agg(
        y=(pl.col(FEMALE) - pl.col(MALE)).mean(), x=pl.col("women_percent").first() / 10
    )
    x, y = pl.col("x"), pl.col("y")
    return gaps.select("cluster", n=pl.lit(1.0), x=x, y=y, xx=x * x, xy=x * y)


def _lists_table(items: pl.DataFrame) -> pl.DataFrame:
    gap, female = pl.col(FEMALE) - pl.col(MALE), (pl.col("group") == FEMALE).cast(pl.Float64)
    return items.select("cluster", f=gap * female, nf=female, m=gap * (1 - female), nm=1 - female)


MEASURES: dict[str, tuple[Measure, ...]] = {
    "crows_pairs": (
        _preference("stereotype_score", "stereotype score", per_token=False),
        _preference("stereotype_score_per_token", "… by the mean per token", per_token=True),
        _fluency(STEREOTYPE, ANTI),
    ),
    "stereoset": (
        _LMS,
        _SS,
        OfTotals(
            name="icat",
            label="ICAT",
            table=_icat_table,
            value=lambda t: np.asarray(metrics.icat(t[:, 0] / t[:, 2], t[:, 1] / t[:, 2])),
        ),
        _three("lms_sum", "language-model score by the sum", metrics.language_model_score,
               per_token=False, kind="size", macro=True),
        _preference("ss_sum", "stereotype score by the sum", per_token=False, macro=True),
        _fluency(STEREOTYPE, ANTI),
    ),
    "winobias": (
        _preference("stereotype_score", "stereotype score", per_token=False),
        Mean(name="stereotype_gap", label="log p(pro) − log p(anti)", of=lambda p, a: p - a,
             columns=(STEREOTYPE, ANTI)),
        _fluency(STEREOTYPE, ANTI),
    ),
    "winogender": (
        Mean(name="female_gap", label="log p(female) − log p(male), pronoun of the occupation",
             of=metrics.gap, columns=(FEMALE, MALE), only="occupation"),
        Mean(name="neutral_gap", label="log p(neutral) − mean of female and male",
             of=lambda n, f, m: n - (f + m) / 2, columns=(NEUTRAL, FEMALE, MALE)),
        OfTotals(name="women_slope", label="rise of the gap per 10 % more women in the occupation",
                 table=_slope_table, value=lambda t: np.asarray(metrics.slope(*t.T))),
        _fluency(NEUTRAL),
    ),
    "subtler_biases": (
        _preference("stereotype_score", "stereotype score", per_token=False),
        _preference("stereotype_score_per_token", "… by the mean per token", per_token=True),
        _three("lms", "language-model score", metrics.language_model_score,
               per_token=False, kind="quality"),
        _three("unrelated_wins", "unrelated option is the likeliest", metrics.unrelated_wins,
               per_token=False, kind="size"),
        _fluency(STEREOTYPE, ANTI, UNRELATED),
    ),
    "occupations": (
        OfTotals(name="lists_gap", label="gap of the female list − gap of the male list",
                 table=_lists_table, value=lambda t: t[:, 0] / t[:, 1] - t[:, 2] / t[:, 3]),
        Mean(name="female_gap", label="log p(she) − log p(he), all 40", of=metrics.gap,
             columns=(FEMALE, MALE)),
    ),
}  # fmt: skip
PRIMARY = {
    "crows_pairs": "stereotype_score",
    "stereoset": "ss",
    "winobias": "stereotype_score",
    "subtler_biases": "stereotype_score",
}
BY_GROUP: dict[str, tuple[str, ...]] = {
    "crows_pairs": ("stereotype_score",),
    "stereoset": ("lms", "ss", "icat"),
    "winobias": ("stereotype_score", "stereotype_gap"),
    "subtler_biases": ("stereotype_score", "lms", "unrelated_wins"),
}
CLUSTERS = {
    "crows_pairs": "writers",
    "stereoset": "target terms",
    "winobias": "occupations",
    "winogender": "occupations",
    "subtler_biases": "pairs of options",
    "occupations": "occupations",
}


def of_set(name: str, measures: Sequence[str] | None = None) -> list[Measure]:
    return [m for m in MEASURES[name] if measures is None or m.name in measures]


def items(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per item that has all its options: its totals, its means per token, its tags."""
    known = rows.filter(pl.col("reason").is_null().all().over("item_id"))
    mean = (pl.col("total") / pl.col("tokens")).alias("mean")
    wide = known.with_columns(mean).pivot(
        on="option", index=("item_id", "group", "cluster", "tags"), values=("total", "mean")
    )
    names = {
        column: column.removeprefix("total_")
        if column.startswith("total_")
        else column.removeprefix("mean_") + "_mean"
        for column in wide.columns
        if column.startswith(("total_", "mean_"))
    }
    tags = [orjson.loads(text) for text in wide["tags"]]
    known_columns = wide.rename(names).with_columns(
        task=pl.Series([tag.get("task") for tag in tags], dtype=pl.String),
        women_percent=pl.Series([tag.get("women_percent") for tag in tags], dtype=pl.String).cast(
            pl.Float64
        ),
    )
    # Where nothing could be scored there are no options either: the measures then have no rows.
    absent = [c for o in _OPTIONS for c in (o, f"{o}_mean") if c not in known_columns.columns]
    return known_columns.with_columns(pl.lit(None, pl.Float64).alias(c) for c in absent)
